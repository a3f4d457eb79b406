# A flight recording whose threads overwrite each other's chunks, small and larger: the program ends as
# it should, the newest calls are there, and what was overwritten is counted.
. "$(dirname "$0")/paths.sh"
need_hook
make_work flight
cd "$work" || exit 1
bad=0
for size in 1M 4M 64M; do
	for how in preload record; do
		rm -f t.weir*
		case $how in
		preload) LD_LIBRARY_PATH=$libs/mock LD_PRELOAD=$hook WEIR=flight=$size,record:$work/t.weir \
			"$programs/slow_and_fast" >out ;;
		record) LD_LIBRARY_PATH=$libs/mock "$weir" record -q --flight=$size -o t.weir -- \
			"$programs/slow_and_fast" >out ;;
		esac
		status=$?
		[ $status = 0 ] && [ "$(cat out)" = "both have ended" ] ||
			{ echo "$size, $how: exit status $status, $(cat out)"; bad=1; continue; }
		check_readable t.weir || bad=1
		awk -F'[:, ]+' '/"(calls|entered|overwritten|lost)": [0-9]/ { n[$2] = $3 }
			END { exit n["\"entered\""] != n["\"calls\""] + n["\"overwritten\""] + n["\"lost\""] }' \
			report.json || { echo "$size, $how: the numbers do not add up"; bad=1; }
		[ "$(grep -o '"overwritten": [0-9]*' report.json)" != '"overwritten": 0' ] || [ $size = 64M ] ||
			{ echo "$size, $how: nothing was overwritten"; bad=1; }
	done
done
[ $bad = 0 ] && rm -rf "$work"
exit $bad
