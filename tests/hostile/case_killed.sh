# SIGKILL at a random moment, 20 times: the trace opens and has every call that had returned.
. "$(dirname "$0")/paths.sh"
need_hook
make_work killed
cd "$work" || exit 1
bad=0
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	rm -f finished t.weir
	LD_LIBRARY_PATH=$sim LD_PRELOAD=$hook WEIR=record:$work/t.weir "$programs/forever" &
	sleep "0.$(awk -v r=$round 'BEGIN { srand(); printf "%02d", 3 + int(rand() * 20) }')"
	kill -KILL $!
	wait $! 2>/dev/null
	finished=$(od -An -tu8 -N8 finished | tr -d ' ')
	[ "${finished:-0}" -gt 0 ] || continue
	check_readable t.weir || bad=1
	have=$(recorded_count t.weir cuLaunchKernel)
	# Each of the three threads may have been between the record and its own count.
	if [ "$have" -lt "$finished" ] || [ "$have" -gt $((finished + 3)) ]; then
		echo "round $round: $have launches recorded, $finished had returned"
		bad=1
	fi
done
[ $bad = 0 ] && rm -rf "$work"
exit $bad
