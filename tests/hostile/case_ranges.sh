# Ranges in a flight recording stay within its size; those of a long run are drained while it goes on;
# those that find no room are counted to the last, and pops go on ending what they should.
. "$(dirname "$0")/paths.sh"
need_hook
make_work ranges
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$libs/mock

complain() {
	echo "$*"
	bad=1
}

"$weir" record -q --flight=1M -o fly.weir -- "$programs/nvtx" many >out 2>&1 || complain "flight: $(cat out)"
check_readable fly.weir || bad=1
have=$(recorded_count fly.weir range:last)
[ "$have" = 1 ] || complain "flight: the last range is not there"
have=$(recorded_count fly.weir range:one)
[ "$have" -gt 0 ] && [ "$have" -lt 30000 ] || complain "flight: $have of 500000 kept in 1 MiB"

# Texts that are another each time do not make it grow without end; what is left out is counted.
"$weir" record -q --no-pack --flight=1M -o texts.weir -- "$programs/nvtx" payloads >out 2>&1 || complain "texts: $(cat out)"
bytes=$(stat -c %s texts.weir)
[ "$bytes" -lt 3000000 ] || complain "texts: $bytes bytes in 1 MiB"
"$weir" report texts.weir >out 2>&1
grep -q 'names and graphs are missing' out || complain "texts: nothing says that some were left out"

# Raw, so that what was drained and what was not are side by side: 56 MB of ranges, at a pace that lets
# a busy machine drain.
"$weir" record -q --no-pack -o long.weir -- "$programs/nvtx" paced >out 2>&1 || complain "long: $(cat out)"
have=$(recorded_count long.weir range:one)
[ "$have" = 500000 ] || complain "long: $have of 500000 recorded"
have=$(recorded_count long.weir range:outer)
[ "$have" = 1 ] || complain "long: the range around all is not there"
bytes=$(stat -c %s long.weir)
[ "$bytes" -lt 40000000 ] || complain "long: $bytes bytes: nothing was drained"

prlimit --fsize=1500000 env LD_PRELOAD="$hook" NVTX_INJECTION64_PATH="$hook" \
	WEIR="record:$work/short.weir" "$programs/nvtx" many >out 2>&1 || complain "short: $(cat out)"
lost=$("$weir" report short.weir | sed -n 's/^ *\([0-9]*\) ranges were lost.*/\1/p')
kept=$(recorded short.weir | awk '/^range:/ { n += $2 } END { print n }')
[ "${lost:-0}" -gt 0 ] && [ $((lost + kept)) = 1000002 ] || complain "short: $kept kept and $lost lost of 1000002"
[ "$(recorded_count short.weir range:outer)" = 1 ] || complain "short: the range around all is not there"
"$weir" record -q --level=stat -o stat.weir -- "$programs/nvtx" many >out 2>&1 || complain "stat: $(cat out)"
[ -z "$(recorded stat.weir | grep range:)" ] || complain "stat: there are ranges at a level without records"
[ $bad = 0 ] && rm -rf "$work"
exit $bad
