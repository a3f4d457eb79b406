# weir record itself under pressure: killed, signalled, nested, run twice on one file.
. "$(dirname "$0")/paths.sh"
need_hook
make_work launcher
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$sim

complain() {
	echo "$*"
	bad=1
}

# The number of launches that have returned.
returned() {
	od -An -tu8 -N8 finished 2>/dev/null | tr -d ' '
}

wait_for_launches() {
	until n=$(returned) && [ "${n:-0}" -gt 0 ]; do
		kill -0 $launcher || { complain "no launch returned"; return; }
		sleep 0.02
	done
}

# Killed: the program goes on, its trace stays.
"$weir" record -q -o killed.weir -- "$programs/forever" &
launcher=$!
wait_for_launches
program=$(tr -d " " </proc/$launcher/task/$launcher/children)
kill -KILL $launcher
wait $launcher 2>/dev/null
sleep 0.2
kill -0 "$program" || complain "the program died with weir record"
kill -KILL "$program"
while kill -0 "$program" 2>/dev/null; do sleep 0.02; done
check_readable killed.weir || bad=1
done_=$(returned)
have=$(recorded_count killed.weir cuLaunchKernel)
[ "$have" -ge "$done_" ] || complain "killed: $have recorded, $done_ had returned"

# SIGTERM is passed on, and the trace is finished.
rm -f finished
"$weir" record -q -o term.weir -- "$programs/forever" &
launcher=$!
wait_for_launches
kill -TERM $launcher
wait $launcher 2>/dev/null
code=$?
[ $code = 143 ] || complain "SIGTERM: status $code, 143 expected"
"$weir" report --json term.weir | grep -q '"finished": true' || complain "SIGTERM: not finished"
done_=$(returned)
have=$(recorded_count term.weir cuLaunchKernel)
[ "$have" -ge "$done_" ] || complain "SIGTERM: $have recorded, $done_ had returned"

# One recording inside another, whose program is not the outer one's: that has no call.
"$weir" record -q -o outer.weir -- "$weir" record -q -o inner.weir -- \
	"$programs/many_launches" 100 >out 2>&1
code=$?
[ $code = 0 ] && [ "$(grep -v '^weir: no CUDA call was seen. ' out)" = "0 failed" ] || complain "nested: status $code, $(cat out)"
[ "$(recorded_count inner.weir cuLaunchKernel)" = 100 ] || complain "nested: the inner one is not whole"

# The same file again: the new recording replaces the old one.
for n in 50 70; do
	"$weir" record -q -o again.weir -- "$programs/many_launches" $n >out 2>&1
	[ "$(recorded_count again.weir cuLaunchKernel)" = $n ] || complain "again: not $n launches"
done
for n in 50 70; do
	env LD_PRELOAD="$hook" WEIR="record:$work/alone.weir" "$programs/many_launches" $n >out 2>&1
	[ "$(recorded_count alone.weir cuLaunchKernel)" = $n ] || complain "alone: not $n launches"
done

# Several programs at once into one file, without weir record.
rm -f together.weir
for i in 1 2 3 4 5 6 7 8; do
	env LD_PRELOAD="$hook" WEIR="record:$work/together.weir" "$programs/many_launches" 3000 \
		>out.$i 2>&1 &
done
wait
have=$(recorded_count together.weir cuLaunchKernel)
[ "$have" -le 24000 ] && [ "$have" -ge 3000 ] || complain "together: $have launches"
grep -L '^0 failed$' out.? | grep . && complain "together: a program was disturbed"

# Each call is a line, although what is printed makes room for what comes.
"$weir" trace -o lines -e cuLaunchKernel -- "$programs/many_launches" 200000 >out 2>&1
lines=$(grep -c 'cuLaunchKernel(.*nothing.* = 0 <' lines)
[ "$lines" = 200000 ] || complain "trace: $lines lines of 200000 launches"

# A trace is private, whatever the umask.
(umask 0 && "$weir" record -q -o private.weir -- "$programs/many_launches" 1 >/dev/null)
[ "$(stat -c %a private.weir)" = 600 ] || complain "mode $(stat -c %a private.weir)"
[ $bad = 0 ] && rm -rf "$work"
exit $bad
