# A profiler inside the program and device times for Weir: both are told of every kernel.
. "$(dirname "$0")/paths.sh"
need_hook
make_work profiler
failures=0
for how in 'late linked default disable' 'late linked own disable' 'late dlsym own finalize' \
	'early linked default disable' 'early dlsym own disable' 'late linked own forget' \
	'late linked default atexit' 'early dlsym own atexit'; do
	LD_LIBRARY_PATH=$sim "$programs/profiler" $how >"$work/alone" || {
		echo "$how: alone, it leaves with status $?"
		exit 1
	}
	(cd "$work" && "$weir" record --sim --gpu -q -o a.weir -- "$programs/profiler" $how >with)
	cmp -s "$work/alone" "$work/with" || {
		echo "$how: the profiler is not told what it is told alone"
		diff "$work/alone" "$work/with"
		failures=1
	}
	"$weir" report --json "$work/a.weir" >"$work/json"
	for want in '"device_kernels": 130' '"early_activities": 0' '"joined": 130' '"checked": 130'; do
		grep -q "$want" "$work/json" || {
			echo "$how: expected $want"
			grep -A4 -E '"join"|"clock"' "$work/json"
			failures=1
		}
	done
done
rm -rf "$work"
exit $failures
