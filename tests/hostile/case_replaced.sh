# Several processes come to CUDA at once and find the trace of an earlier run: one of them replaces it,
# the others join, and nobody's calls go into a file that another has replaced.
# case_replaced.sh BUILD [ROUNDS]
. "$(dirname "$0")/paths.sh"
need_hook
make_work replaced
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH="$libs/mock"

once() { # PROGRAM...: under the library alone; its calls must all be in the trace
	LD_PRELOAD="$hook" WEIR="record:$work/t.weir" timeout 60 "$@" >out 2>err ||
		{ echo "$*: status $?: $(cat err)"; bad=1; }
	check_readable t.weir || bad=1
}

round=0
while [ $((round += 1)) -le "${2:-20}" ]; do
	once "$programs/many_launches" 10
	# the name of a file that somebody who was killed has left is free again
	[ $((round % 2)) = 0 ] || cp t.weir t.weir.new-by-weir
	rm -f counts
	once "$programs/start_race" processes
	wanted=$(awk '$1 == "cuLaunchKernel" { print $2 }' counts)
	now=$(recorded_count t.weir cuLaunchKernel)
	[ "$now" = "$wanted" ] || { echo "round $round: $now launches of $wanted"; bad=1; }
	for file in t.weir*; do
		[ "$file" = t.weir ] || { echo "round $round: $file is left"; bad=1; }
	done
	[ "$(stat -c %a t.weir)" = 600 ] || { echo "mode $(stat -c %a t.weir)"; bad=1; }
	[ $bad = 0 ] || break
done
[ $bad = 0 ] && rm -rf "$work"
exit $bad
