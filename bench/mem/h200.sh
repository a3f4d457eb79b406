#!/bin/sh
# What is measured on a GPU before a release of the pool and of reconstructed timelines, in at most 450 s: steps under the pool
# and what they need (turns.py), reconstruction of three programs (tests/gpu/timeline.py), and what a launch costs plain,
# recorded and under weir run (bench-launch).
#
#	sh bench/mem/h200.sh BUILD OUT
#
# OUT/h200.json has all of it.
build=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" && out=$(cd "$2" && pwd) || exit 2
here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir
[ -x "$build/bin/bench-launch" ] || cmake --build "$build" --target bench-launch >/dev/null || exit 2
timeout 230 python3 "$here/turns.py" --weir-program "$weir" --out "$out/pool.json" 2>&1 | tee "$out/pool.txt"
for turn in 1 2 3; do
	for way in record run; do
		[ $way = run ] && set -- run --isolated --share "$out/share" || set -- record --level=all
		"$weir" "$@" -q -o "$out/launch.weir" -- "$build/bin/bench-launch" "$out/launch.weir" | sed "s/^/$way: /"
		rm -f "$out/launch.weir"
	done
done 2>&1 | tee "$out/launch.txt"
timeout 150 python3 "$here/../../tests/gpu/timeline.py" "$build" streams cupy llama --rounds 1 --ways plain,predict \
	--out "$out/timeline.json" 2>&1 | tee "$out/timeline.txt"
python3 - "$out" <<'P'
import json, os, sys
out, whole = sys.argv[1], {}
for name in ('pool', 'timeline'):
    path = os.path.join(out, name + '.json')
    whole[name] = json.load(open(path)) if os.path.exists(path) else None
whole['launch'] = open(os.path.join(out, 'launch.txt')).read().splitlines()
json.dump(whole, open(os.path.join(out, 'h200.json'), 'w'), indent=1)
P
