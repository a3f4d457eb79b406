# Names of a recording in every format: none drives a terminal, turns a line around, or runs in a spreadsheet.
weir=$1
. "$(dirname "$0")/expect.sh"
"$weir" help import >/dev/null 2>&1 || exit 0
slow=$(cd "$(dirname "$0")/../golden/readme" && pwd)/slow.weir
man=$(cd "$(dirname "$0")/../../man" && pwd)/weir-export.1.in
cd "$scratch" || exit 1

number=0 events=
for name in '\u001b[31mred\u001b]0;title\u0007\u001b[2J' '\u009b31mC1' 'a\nb' 'c\rd' 'e\u007ff' '\u202egnp.exe' \
	'\u2028line' '\u2066isolate' '\u0000nul' '<script>alert(1)</script>' '=1+1'; do
	number=$((number + 1))
	events="$events
{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"$name\",\"pid\":9,\"tid\":9,\"ts\":${number}00,\"dur\":50,\"args\":{\"External id\":$number}},
{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":9,\"tid\":9,\"ts\":${number}05,\"dur\":5,\"args\":{\"correlation\":$number}},
{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"$name\",\"pid\":0,\"tid\":7,\"ts\":${number}20,\"dur\":20,\"args\":{\"correlation\":$number,\"device\":0,\"stream\":7,\"grid\":[1,1,1],\"block\":[32,1,1]}},
{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":9,\"tid\":9,\"ts\":${number}30,\"args\":{\"Total Allocated\":${number}000,\"Bytes\":1000,\"Addr\":$((number * 4096)),\"Device Id\":0,\"Device Type\":1}},"
done
printf '%s\n' "{\"traceEvents\":[$events
{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":9,\"tid\":0,\"args\":{\"name\":\"</script>\\u001b[31m\"}},
{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":9,\"tid\":9,\"args\":{\"name\":\"\\u001b[5m\"}}],
\"deviceProperties\":[{\"id\":0,\"name\":\"\\u001b[1mdevice\\u009b\",\"totalGlobalMem\":8589934592,\"computeMajor\":9,\"computeMinor\":0,\"numSms\":132}]}" >names.json
"$weir" import -q -o names.weir names.json || exit 1

# C0 but the line feed (a tab indents JSON), DEL, C1, U+2028 and U+2029, U+202A to 202E, U+2066 to 2069.
unsafe() {
	"$weir" "$@" 2>&1 | LC_ALL=C grep -a -c -P '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]'
}
for command in 'report -n 0' 'report --json' 'hints -n 0' 'hints --json' 'memory -n 0' 'memory --json' \
	'diff names.weir' 'diff --json names.weir' 'flame -f folded' 'flame -f svg' 'flame -f speedscope' html \
	'export -f chrome' 'export -f ndjson' 'export -f dataset' 'export -f dataset-card'; do
	# shellcheck disable=SC2086 # words of a command
	expect 1 '^0$' unsafe $command names.weir
done
# An export to SQLite is no trace, and is not taken for another tool's; nor is it when it comes
# through a pipe.
"$weir" export -f sqlite -o own.sqlite names.weir || exit 1
expect 2 'own.sqlite is an export of a trace' "$weir" report own.sqlite
expect 2 'is an export of a trace' sh -c "cat own.sqlite | '$weir' report -"

# Without -f the name of the output chooses: each ending that is listed, in the manual too, means one format.
listed=$("$weir" export names.weir 2>&1) && exit 1
for format in perfetto chrome csv ndjson columns sqlite memory_viz dataset-card; do
	endings=$(echo "$listed" | sed -n "s/.*[ ]$format (\([^)]*\)).*/\1/p")
	expect 0 '\.' echo "$endings"
	expect 0 "" grep -qx "\.It Cm $format Pq $(echo " $endings" | sed 's/ \./ \\\\\&./g; s/^ //')" "$man"
	for ending in $endings; do
		"$weir" export -f $format -o asked names.weir && "$weir" export -o "by.name$ending" names.weir
		expect 0 '^$' cmp asked "by.name$ending"
		rm -f asked "by.name$ending"
	done
done
"$weir" export -f ndjson -o asked.csv names.weir
expect 0 '^\{' cat asked.csv
expect 2 'choose a format with -f.*chrome \(\.json\).*sqlite \(\.sqlite' "$weir" export names.weir
for name in out out.xyz out. out.perfett out.json.gz csv a.csv/out .; do
	expect 2 "$name does not end as a format does: choose one with -f.* csv \(\.csv\)" "$weir" export -o "$name" names.weir
	expect 1 '' test -f "$name"
done
expect 2 'choose a format' "$weir" export -o - names.weir

# - is standard output, not a file of that name.
for what in 'export -f ndjson' 'flame -f folded' html; do
	"$weir" $what names.weir >plain
	"$weir" $what -o - names.weir >dash
	expect 0 '^$' cmp plain dash
	expect 1 '' test -e ./-
done
"$weir" export -f csv names.weir | tr -d '\r' >names.csv
expect 1 '^0$' sh -c "LC_ALL=C grep -a -c -P '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' names.csv"
expect 0 "\"'=1\+1\"" cat names.csv

# Names of files are not the terminal's either: of what is read, written, recorded and looked at.
red=$(printf 'red\033[31m\302\233')
cp names.json "$red.json" && echo '{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1},' >"$red.cut.json"
printf '#!/bin/sh\n' >"$red.true" && chmod +x "$red.true"
expect 0 'red\?\[31m\?\.weir' "$weir" import -o "$red.weir" "$red.json"
expect 1 '^0$' unsafe import -o "$red.weir" "$red.json"
expect 0 'red\?\[31m\?\.cut\.json was not read whole' "$weir" import -o "$red.weir" "$red.cut.json"
expect 1 '^0$' unsafe import -o "$red.weir" "$red.cut.json"
if "$weir" help record >/dev/null 2>&1; then
	expect 0 'red\?\[31m\?\.true` says why' "$weir" record -o "$red.new.weir" -- "./$red.true"
	expect 1 '^0$' unsafe record -o "$red.new.weir" -- "./$red.true"
	expect 1 '^0$' unsafe doctor -- "./$red.true"
fi

# Text that is not the recording's stays: a letter beyond ASCII is not touched.
sed 's/=1+1/größe/' names.json >letters.json
"$weir" import -q -o letters.weir letters.json
expect 0 'größe' "$weir" report -n 0 letters.weir
expect 0 'größe' "$weir" flame -f folded letters.weir

# How the program ended is told decoded: the header has what wait() gave (bytes 148 to 151).
cp "$slow" ended.weir && chmod 600 ended.weir
ended() { # BYTES
	printf "$1" | dd of=ended.weir bs=1 seek=148 conv=notrunc 2>/dev/null
	"$weir" report --json ended.weir | grep exit_
	"$weir" report ended.weir | grep '^  ended'
}
expect 0 '"exit_status": 3,' ended '\000\003\000\000'
expect 0 '"exit_signal": 0,' ended '\000\003\000\000'
expect 0 'exit status 3' ended '\000\003\000\000'
expect 0 '"exit_status": 0,' ended '\211\000\000\000'
expect 0 '"exit_signal": 9,' ended '\211\000\000\000'
expect 0 'killed by signal 9' ended '\211\000\000\000'

# Time in which recording was switched off (3 s of 3.7, bytes 200 to 207) is in no rate.
cp "$slow" off.weir && chmod 600 off.weir
expect 0 'churn +315 MiB/s' "$weir" memory off.weir
printf '\000\136\320\262\000\000\000\000' | dd of=off.weir bs=1 seek=200 conv=notrunc 2>/dev/null
expect 0 'switched off +3.00 s' "$weir" report off.weir
expect 0 '"off_ns": 3000000000,' "$weir" report --json off.weir
expect 0 'churn +1.6[0-9] GiB/s' "$weir" memory off.weir

# A time of the calendar is one where a person reads it, and a number where a program does.
expect 0 'began +2026-11-20T16:35:26Z' "$weir" report --only trace "$slow"
expect 0 '"start_realtime_ns": 1795192526[0-9]{9}' "$weir" report --only trace --json "$slow"
# The host's waits are in the recording, and no work of a GPU.
expect 0 '"kind": "sync"' "$weir" report --only device_activities --json "$slow"
expect 1 '^0$' sh -c "'$weir' report --only gpu_trace --json '$slow' | grep -c '\"kind\": \"wait\"'"
expect 0 ',"kernel",' "$weir" report --only gpu_trace --csv "$slow"
finish
