# Call stacks (weir record --stacks), of a program in C and of one in Python, on the simulated driver.
weir=$1
source=$2
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
programs=$source/tests/cli/programs
app=$build/tests/cli/programs/leaking
[ -e "$build/lib/weir/sim/libcuda.so.1" ] && [ -e "$build/lib/weir/libweir.so" ] && [ -x "$app" ] || exit 0
cd "$scratch" || exit 1

line() { # FILE NAME: the number of the line that says so
	grep -n "LINE $2\$\|LINE $2 " "$programs/$1" | cut -d : -f 1
}
# JSON: the stack of one object as "function:line function:line"
frames() {
	sed -n "/$1/,/\]/p" "$2" | sed -n 's/.*"function": "\([^"]*\)".*"line": \([0-9a-z]*\),.*/\1:\2/p' | tr '\n' ' '
}

expect 0 '' "$weir" record --sim -q --stacks -o c.weir -- "$app"
expect 0 'Never freed, by call stack' "$weir" memory c.weir
"$weir" memory c.weir >c.txt
take=$(line leaking.c take_buffer) forget=$(line leaking.c forget_it) wait=$(line leaking.c wait_for_it)
expect 0 "^  8.00 MiB in 8 blocks;      take_buffer .leaking.c:$take.;      forget_it .leaking.c:$forget." \
	sh -c "tr '\n' ';' <c.txt | sed 's/^.*Never freed, by call stack;//'"
expect 0 "cuMemAlloc_v2 +take_buffer .leaking.c:$take. < forget_it .leaking.c:$forget." "$weir" memory c.weir
# Memory that is given back is no leak, but was live at the peak with the rest.
expect 1 '' sh -c "sed -n '/^Never freed, by call stack/,/^Live at the peak/p' c.txt | grep give_it_back"
expect 0 'give_it_back' cat c.txt
# A list by call stacks says what it leaves out.
expect 1 '' grep 'without a call stack' c.txt
expect 0 '' "$weir" record --sim -q --stacks=alloc,sample:3 -o some.weir -- "$app"
expect 0 '^  [0-9.]+ [KM]iB in [0-9]+ blocks without a call stack' "$weir" memory some.weir
# The compiler has put wait_for_it() into forget_it(): both are frames.
expect 0 "8 .* cuCtxSynchronize +wait_for_it .leaking.c:$wait. < forget_it .leaking.c:.* < run .leaking.c" \
	"$weir" report c.weir
"$weir" report --json c.weir >c.json
expect 0 '"call_stacks": {' cat c.json
expect 0 '"function": "main".*"file": "[^"]*leaking.c", "line": [0-9]*, "module": "leaking", "language": "native"' \
	sh -c "tr -d '\n' <c.json"
expect 0 '"count": 24,' cat c.json
expect 0 '"not_unwound": 0,' cat c.json
expect 1 '' grep -q '"warnings": \[[^]]' c.json
expect 0 '"by_call_stack"' "$weir" memory --json c.weir

# Flame graphs have the functions between the thread and the call.
expect 0 "main .leaking.c:[0-9]*.;run .leaking.c:[0-9]*.;forget_it .leaking.c:$forget.;take_buffer .leaking.c:$take.;cuMemAlloc_v2 [0-9]" \
	"$weir" flame --by host c.weir
expect 0 'function of the program' "$weir" flame -f svg c.weir

# weir trace prints them below the calls; without --stacks there are none.
traced() { # OPTION...: the lines, a call and its frames joined by blanks
	"$weir" trace --sim "$@" -- "$app" 2>&1 >/dev/null | tr '\n' ' ' | sed 's/  [0-9.]* \[[0-9.]*\] /\n/g'
}
expect 0 "^cuMemAlloc_v2.*bytesize=1048576. = 0 <[^>]*> +> take_buffer .leaking.c:$take. +> forget_it .leaking.c:$forget. +> run .leaking.c:[0-9]*. +> main" \
	traced --stacks -e memory -e sync
expect 0 "^cuCtxSynchronize.. = 0 <[^>]*> +> wait_for_it .leaking.c:$wait." traced --stacks=sync -e sync
# A copy that waits is a wait, one that does not is none.
copies=$(dirname "$app")/timeline
expect 0 '^ +> copies .timeline' "$weir" trace --sim --stacks=sync -e cuMemcpyDtoH_v2 -- "$copies" copies
expect 1 '^0$' sh -c "'$weir' trace --sim --stacks=sync -e 'cuMemcpy*Async*' -- '$copies' copies 2>&1 | grep -c '  > '"
expect 1 '^0$' sh -c "'$weir' trace --sim --stacks=sync -e memory -- '$app' 2>&1 | grep -c '  > '"
expect 1 '^0$' sh -c "'$weir' trace --sim -e memory -- '$app' 2>&1 | grep -c '  > '"
expect 0 "\"stack\":..take_buffer .leaking.c:$take.\",\"forget_it .leaking.c:$forget." \
	"$weir" trace --sim --stacks --json -e 'cuMemAlloc*' -- "$app"
expect 2 'alloc, free, sync' "$weir" trace --sim --stacks=all -- "$app"
expect 2 'does not go with -p and -c' "$weir" trace --sim --stacks -c -- "$app"
expect 2 'does not go with -p and -c' "$weir" trace --stacks -p $$

# Exports of calls have them too.
inner="take_buffer .leaking.c:$take." outer="forget_it .leaking.c:$forget."
expect 0 "\"name\":\"cuMemAlloc_v2\",.*\"stack\":.\"$inner\",\"$outer\"" "$weir" export -f ndjson c.weir
expect 0 "\"name\":\"cuMemAlloc_v2\",.*\"stack\":.\"$inner\",\"$outer\"" "$weir" export -f chrome c.weir
expect 0 '' "$weir" export -f perfetto -o c.pftrace c.weir
expect 0 "$inner < $outer < run" grep -a 'take_buffer' c.pftrace

# In SQLite each frame is a row, and the tables that Nsight Systems has of stacks lead there.
if python3 -c 'import sqlite3' 2>/dev/null; then
	expect 0 '' "$weir" export -f sqlite -o c.sqlite c.weir
	cat >look.py <<'END'
import sqlite3
db = sqlite3.connect('c.sqlite')
for row in db.execute("""SELECT c.value, f.value, t.line, t.language, COUNT(*) FROM call_stacks s
    JOIN calls l ON l.id = s.callId JOIN StringIds c ON c.id = l.nameId JOIN stacks t ON t.id = s.stackId AND t.depth = 0
    JOIN StringIds f ON f.id = t.functionId GROUP BY 1, 2, 3 ORDER BY 1, 3"""):
    print(*row)
for row in db.execute("""SELECT n.value, s.value, COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds n ON n.id = r.nameId
    JOIN CUDA_CALLCHAINS k ON k.id = r.callchainId AND k.stackDepth = 1 JOIN StringIds s ON s.id = k.symbol GROUP BY 1, 2"""):
    print('chain', *row)
END
	expect 0 "^cuCtxSynchronize wait_for_it $wait native 8\$" python3 look.py
	expect 0 "^cuMemAlloc_v2 take_buffer $take native 16\$" python3 look.py
	expect 0 '^chain cuMemAlloc_v2 forget_it 8$' python3 look.py
	expect 0 '^chain cuMemAlloc_v2 give_it_back 8$' python3 look.py
fi

# The pieces of stacks are not kept; a trace that still has them is unwound when it is read.
expect 0 '' "$weir" record --sim -q --no-pack --stacks -o raw.weir -- "$app"
"$weir" report raw.weir | sed -n '/^Calls by call stack/,/^$/p' | awk '{ $2 = $3 = $4 = $5 = $6 = $7 = ""; print }' >raw.txt
"$weir" report c.weir | sed -n '/^Calls by call stack/,/^$/p' | awk '{ $2 = $3 = $4 = $5 = $6 = $7 = ""; print }' >packed.txt
expect 0 '' sh -c 'sort raw.txt >a; sort packed.txt >b; [ -s a ] && cmp a b'
size() { wc -c <"$1"; }
expect 0 '' sh -c "[ $(size c.weir) -lt 100000 ]"

# Other calls, one of several, other sizes; and what was not asked for is not there.
expect 0 '"count": 8,' sh -c "'$weir' record --sim -q --stacks=free -o f.weir -- '$app' && '$weir' report --json f.weir | sed -n '/call_stacks/,/rows/p'"
expect 0 '"count": 6,' sh -c "'$weir' record --sim -q --stacks=alloc,sync,sample:4 -o s.weir -- '$app' && '$weir' report --json s.weir | sed -n '/call_stacks/,/rows/p'"
expect 0 '' "$weir" record --sim -q --stacks=bytes:512 -o small.weir -- "$app"
expect 0 'of 24 call stacks end early' "$weir" report small.weir
expect 0 '' "$weir" record --sim -q -o without.weir -- "$app"
expect 1 '' sh -c "'$weir' report --json without.weir | grep call_stacks"
expect 2 'give alloc, free, sync' "$weir" record --sim --stacks=everything -o no.weir -- "$app"
expect 2 'bytes:SIZE' "$weir" record --sim --stacks=bytes:1M -o no.weir -- "$app"
[ -e no.weir ] && { echo "a refusal left a trace"; failures=$((failures + 1)); }

# In a forked child; in a flight recording; in part of a recording.
expect 0 '' "$weir" record --sim -q --stacks -o fork.weir -- "$app" fork
expect 0 "take_buffer .leaking.c:$take." "$weir" memory fork.weir
expect 0 '' "$weir" record --sim -q --flight=4M --stacks -o flight.weir -- "$app"
expect 0 "take_buffer .leaking.c:$take." "$weir" memory flight.weir
expect 0 "take_buffer" "$weir" report --after 1ns c.weir
expect 1 '' sh -c "'$weir' report --before 1ns c.weir | grep take_buffer"

# Files that are no longer what they were are not used.
cp "$app" moved
expect 0 '' "$weir" record --sim -q --no-pack --stacks -o moved.weir -- ./moved
expect 0 "take_buffer" "$weir" memory moved.weir
cp "$build/tests/cli/programs/steady" moved
expect 1 '' sh -c "'$weir' memory moved.weir | grep take_buffer"
expect 0 'end at code whose caller' "$weir" report moved.weir

# The library looks at mappings now and then, for the sake of calls of the driver: not in the time
# of those of the runtime that they are in.
looks=$build/tests/cli/programs/looks
expect 0 '' "$weir" record --sim -q --no-pack --stacks -o looks.weir -- "$looks" run
expect 0 '^looks, 0 of them in calls of the runtime$' "$looks" looks.weir

python=$(command -v python3) || { finish; exit; }
"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { finish; exit; }
expect 0 '' "$weir" record --sim -q --stacks -o py.weir -- "$python" "$programs/leaking.py"
put=$(line leaking.py put) gen=$(line leaking.py größer) main=$(line leaking.py main) fold=$(line leaking.py fold)
"$weir" memory py.weir >py.txt
expect 0 "3.00 MiB in 3 blocks;      Cache.put .leaking.py:$put.;      größer .leaking.py:$gen.;      main .leaking.py:$main.;      <module> " \
	sh -c "tr '\n' ';' <py.txt"
expect 0 "64.0 KiB in 1 block;      Cache.put .leaking.py:$put.;      main.<locals>.in_thread .leaking.py:$(line leaking.py in_thread).;      Thread.run .threading.py:" \
	sh -c "tr '\n' ';' <py.txt"
expect 0 "3 .* cuCtxSynchronize +fold .leaking.py:$fold. < main .leaking.py:$main. < <module> " "$weir" report py.weir
expect 0 '"function": "Cache.put", "file": "[^"]*leaking.py", "line": '"$put"', "module": null, "language": "python"' \
	"$weir" memory --json py.weir
# C and Python stand in one order: what reduce() calls is between fold() and main().
"$weir" report --json py.weir | tr -d '\n\t' >py.json
expect 0 'functools_reduce' sh -c "grep -Po '\"function\": \"fold\"((?!\]).)*\"function\": \"main\"' py.json"

finish
