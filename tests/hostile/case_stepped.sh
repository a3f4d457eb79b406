# A signal at every instruction of what writes ranges and calls: handlers that go through more chunks than
# a thread keeps, that push and do not pop, that fork, that change what is being launched.  See
# programs/stepped.c.
. "$(dirname "$0")/paths.sh"
need_hook
make_work stepped
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$libs/mock

# Ranges of one name follow each other: one that was not ended when it should have been, or lasts longer
# than the recording, lies over the next.
ended='
/"name":"(outer|left)"/ {
	name = /"outer"/
	ts = $0
	sub(/.*"ts":/, "", ts)
	dur = $0
	sub(/.*"dur":/, "", dur)
	bad += ts + 0 < end[name]
	end[name] = ts + dur
}
END {
	print bad + 0 " ranges did not end in time"
	exit bad > 0
}'

# A call that lies outside of the recording was written over by another.
astray='
/"name":"cuLaunchKernel"/ {
	n++
	ts = $0
	sub(/.*"ts":/, "", ts)
	bad += ts + 0 < 0 || ts + 0 > 1e9
}
END {
	print bad + 0 " of " n + 0 " calls lie outside of the recording"
	exit bad > 0 || !n
}'

complain() {
	echo "$*"
	bad=1
}

for how in pairs changed pushes fork config; do
	timeout 100 "$programs/stepped" $how >plain.out 2>&1
	status=$?
	[ $status != 77 ] || { cat plain.out; rm -rf "$work"; exit 77; }
	[ $status = 0 ] || complain "$how: alone, it leaves with status $status: $(cat plain.out)"
	config=record:$work/$how.weir
	case $how in pairs | changed) config=flight=1M,$config ;; esac
	rm -f counts
	timeout 200 env LD_PRELOAD="$hook" NVTX_INJECTION64_PATH="$hook" WEIR="$config" \
		"$programs/stepped" $how >with.out 2>&1
	status=$?
	[ $status = 0 ] || complain "$how: leaves with status $status"
	cmp -s plain.out with.out || complain "$how: the output differs: $(cat with.out)"
	[ $how != changed ] || continue # nor is what it holds to be believed
	check_readable $how.weir || bad=1
	[ $how = pairs ] && continue
	want=$(sed -n 's/^range:outer \([0-9]*\) .*/\1/p' counts)
	have=$(recorded_count $how.weir range:outer)
	[ "$have" = "$want" ] || complain "$how: $have ranges of $want are there"
	"$weir" export -f chrome -o $how.json $how.weir
	awk "$ended" $how.json >ends || complain "$how: $(cat ends)"
	[ $how != config ] || awk "$astray" $how.json >ends || complain "$how: $(cat ends)"
done
[ $bad = 0 ] && rm -rf "$work"
exit $bad
