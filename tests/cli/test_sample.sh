# Device times from events around one launch in N, on the simulated driver.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
[ -e "$build/lib/weir/libweir.so" ] && [ -e "$build/lib/weir/sim/libcupti.so.13" ] || exit 0
cd "$scratch" || exit 1
cp "$build/examples/vecadd" . || exit 1
app=./vecadd

# The report's row of its one kernel, and how many launches of it and of graphs were timed.
kernel() { # KEY TRACE
	"$weir" report --json "$2" | sed -n '/"kernels": /,/]/p' |
		sed -n "s/.*\"$1\": \([0-9a-z]*\).*/\1/p" | head -n 1
}
timed() { # TRACE
	"$weir" report --json "$1" | sed -n -e '/"device_activities": /,/^\t]/s/.*"device_timed": \([0-9]*\).*/\1/p' \
		-e 's/.*"device_left_out": \([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n + 0 }'
}
record() { # TRACE OPTION...
	trace=$1
	shift
	"$weir" record --sim -q -o "$trace" "$@" -- $app >out 2>&1 || echo "weir record $* failed"
}
record all.weir --gpu
record one.weir --gpu=sample:1
record eight.weir --gpu=sample:8
record raw.weir --gpu=sample:8 --no-pack
record default.weir --gpu=sample

# The times of the simulated driver follow a law, so that a sample says what all say.
expect 0 "^$(kernel device_p50_ns all.weir)$" kernel device_p50_ns eight.weir
expect 0 "^$(kernel device_total_ns all.weir)$" kernel device_total_estimate_ns eight.weir
expect 0 "^$(kernel count all.weir)$" kernel count eight.weir
expect 0 '^50000$' kernel device_p50_ns eight.weir

# 200 kernels and 20 graphs; those that go into a graph are not timed.
expect 0 '^220$' timed one.weir
expect 0 '^(2[0-9]|3[0-5])$' timed eight.weir
expect 0 "^$(timed eight.weir)$" timed raw.weir
expect 0 '^[234]$' timed default.weir

# A stream's other work between two launches is no kernel's time, whether they share an event or
# not.
app="$build/tests/hostile/programs/sampled between"
if [ -x "$build/tests/hostile/programs/sampled" ]; then
	record between.weir --gpu=sample:1
	app="$build/tests/hostile/programs/sampled streams"
	record streams.weir --gpu=sample:1
	for trace in between streams; do
		expect 0 '^1000$' timed $trace.weir
		expect 0 "^$(kernel device_p50_ns $trace.weir)000$" kernel device_total_estimate_ns $trace.weir
	done
	expect 0 "^$(kernel device_p50_ns streams.weir)$" kernel device_p50_ns between.weir
fi

# The total is an interval, which holds the true one: 200 kernels and 20 graphs of them.
total() { # KEY TRACE
	"$weir" report --json "$2" | sed -n "s/^\t\t\"$1\": \([0-9a-z]*\).*/\1/p" | head -n 1
}
while read -r trace truth; do
	least=$(total device_total_least_ns $trace.weir) most=$(total device_total_most_ns $trace.weir)
	expect 0 '^yes$' sh -c "[ $least -gt 0 ] && [ $least -le $truth ] && [ $truth -le $most ] && echo yes"
	expect 0 'launches and graphs took at most [0-9.]+ ms, at least [0-9.]+ [mu]s in all' "$weir" report $trace.weir
done <<TRUTH
one $(total device_total_estimate_ns one.weir)
eight $((200 * 50000))
TRUTH
expect 0 'and without 20 launches of graphs, none of which was timed' "$weir" report eight.weir

# The first launch of a kernel loads its module, and the stream waits for that.  It is no time of the kernel: six launches
# are held up for 20 ms each, and none of the others for more than 30 us that is taken for the kernel's.
app="$build/tests/cli/programs/timeline gaps"
if [ -x "$build/tests/cli/programs/timeline" ]; then
	export WEIR_SIM='time=virtual,launch=1us,kernel=work_*:0:1us'
	record law.weir --gpu
	export WEIR_SIM='time=real,launch=1us,load=20ms,kernel=work_*:0:1us'
	record lazy.weir --gpu=sample:1
	unset WEIR_SIM
	truth=$("$weir" report --json law.weir | sed -n 's/.*"device_total_ns": \([0-9]*\).*/\1/p' | head -n 6 |
		awk '{ n += $1 } END { print n }')
	expect 0 "^$(total device_kernels law.weir)$" timed lazy.weir
	expect 0 '^[1-9]' total device_left_out lazy.weir
	expect 0 'more are left out: the host was slow' "$weir" report lazy.weir
	for key in device_total_estimate_ns device_total_most_ns; do
		expect 0 '^yes$' sh -c "[ $(total $key lazy.weir) -lt $((truth + 30000000)) ] && echo yes"
	done
fi

# A report of samples says so, and nothing that they can't tell.
expect 0 'one launch in 8 was timed, with events around it' "$weir" report eight.weir
expect 0 'one launch in 64 was timed' "$weir" report default.weir
expect 0 'each launch was timed' "$weir" report one.weir
expect 0 'Kernels by estimated time on the device' "$weir" report eight.weir
expect 0 '"sampled": 8' "$weir" report --json eight.weir
expect 0 '"sampled": null' "$weir" report --json all.weir
expect 0 '^null$' kernel device_total_ns eight.weir
expect 0 '^null$' kernel device_total_estimate_ns all.weir
expect 0 'Where the wall time went' "$weir" report all.weir
expect 1 '^$' sh -c "'$weir' report eight.weir | grep -E 'Where the wall time|critical path|Streams by'"

# So do the others.  A flame graph of samples adds up to what the report estimates: 200 kernels and 20
# graphs, whose nodes are in what a graph takes.
estimate() { "$weir" report --json "$1" | sed -n 's/.*"device_total_estimate_ns": \([0-9]*\),$/\1/p' | head -n 1; }
flame() { "$weir" flame "$1" 2>/dev/null | awk '{ n += $NF } END { printf "%d", n }'; }
expect 0 "^$(estimate one.weir)$" flame one.weir
expect 0 "^$(estimate eight.weir)$" flame eight.weir
expect 0 'one launch in 8 was timed: times are estimates' "$weir" flame eight.weir
expect 0 'estimated: one launch in 8 was timed' "$weir" flame -f svg eight.weir
expect 0 'One launch in 8 was timed, and most rules need' "$weir" hints eight.weir
expect 0 '"sampled": ?8' "$weir" export -f chrome eight.weir
expect 0 'one launch in 8, about when it was made' "$weir" export -f perfetto -o /dev/stdout eight.weir
expect 0 ',,8$' "$weir" export -f dataset eight.weir
expect 0 'Run 1 of B timed one launch in 8' "$weir" diff all.weir eight.weir
expect 0 'no kernel is judged' "$weir" diff all.weir eight.weir
expect 0 'kernel slower > 0: nothing to compare' "$weir" diff -f 'kernel slower > 0' all.weir eight.weir
expect 0 '"sampled": 8' "$weir" diff --json all.weir eight.weir
expect 0 'Run 1 of A timed one launch in 1\.' "$weir" diff one.weir eight.weir
expect 1 '^$' sh -c "'$weir' diff one.weir eight.weir | grep -E 'no kernel is judged|devices busy'"

# Each sample names its call, which other tools are told.
if python3 -c 'import sqlite3' 2>/dev/null; then
	"$weir" export -f sqlite -o one.sqlite one.weir
	expect 0 '^200 20$' python3 -c "
import sqlite3
db = sqlite3.connect('one.sqlite')
one = lambda name: db.execute('SELECT count(DISTINCT c.start) FROM work JOIN calls c USING (pid, correlationId) '
	'JOIN StringIds s ON s.id = c.nameId WHERE value = ? AND work.start >= c.start', (name,)).fetchone()[0]
print(one('cuLaunchKernel'), one('cuGraphLaunch'))"
fi

expect 2 'sample:N for one launch in N' "$weir" record --gpu=sample:0 -- "$app"
expect 2 'sample:N for one launch in N' "$weir" record --gpu=sample:x -- "$app"
expect 2 'sample:N for one launch in N' "$weir" record --gpu=some -- "$app"
expect 0 'WEIR=gpu=sample:0,record' env LD_PRELOAD="$build/lib/weir/libweir.so" WEIR=gpu=sample:0,record:x.weir true
finish
