#!/bin/sh
# OPT-125m, eager and compiled, under `weir record --gpu` and under torch.profiler: as many kernels,
# as much time on the device; what a forward costs under each; and what `weir diff` says of eager
# against compiled: of forwards from recordings of calls alone, which cost little, and of kernels.
# Prints Markdown; exits 1 unless counts are equal, times on the device within 1 %, and the factor of
# a forward within 15 % of what the program measures by itself, all in turns.
#
#	sh tests/gpu/opt125m.sh BUILD [OUT] [ROUNDS]
#
# Needs a GPU, PyTorch and transformers.  The traces stay in OUT.
set -u
build=$(cd "$1" && pwd)
mkdir -p "${2:-.}" && out=$(cd "${2:-$(mktemp -d)}" && pwd)
program=$(cd "$(dirname "$0")" && pwd)/programs/opt125m.py
weir=$build/bin/weir
failed=0

echo "| program | ms a forward: plain | under weir record --gpu | under torch.profiler | kernels: weir | profiler | device ms: weir | profiler |"
echo "|---|---|---|---|---|---|---|---|"
for way in eager compiled; do
	flag=
	[ $way = compiled ] && flag=--compile
	plain=$(python3 "$program" $flag 2>/dev/null)
	recorded=$("$weir" record -q --gpu -o "$out/$way.weir" -- python3 "$program" $flag 2>"$out/$way.err")
	profiled=$(python3 "$program" $flag --profile "$out/$way.json" 2>/dev/null)
	"$weir" report --json "$out/$way.weir" >"$out/$way.report.json"
	python3 - "$way" "$plain" "$recorded" "$profiled" "$out/$way.report.json" "$out/$way.json" <<-'END' || failed=1
		import json, sys
		way, plain, recorded, profiled = sys.argv[1:5]
		report = json.load(open(sys.argv[5]))
		kernels = [w for w in report["device_activities"] if w["kind"] == "kernel"]
		theirs = json.load(open(sys.argv[6]))
		count = sum(k["count"] for k in kernels), sum(c for c, _ in theirs.values())
		ms = sum(k["device_total_ns"] for k in kernels) / 1e6, sum(t for _, t in theirs.values()) / 1e3
		print("| %s | %s | %s | %s | %d | %d | %.3f | %.3f |" % ((way, plain, recorded, profiled) + count + ms))
		sys.exit(count[0] != count[1] or abs(ms[0] / ms[1] - 1) > 0.01)
	END
done
echo
rounds=${3:-3}
for round in $(seq "$rounds"); do
	for way in eager compiled; do
		flag=
		[ $way = compiled ] && flag=--compile
		python3 "$program" $flag 2>/dev/null >>"$out/$way.plain"
		"$weir" record -q -o "$out/$way-$round.weir" -- python3 "$program" $flag >/dev/null 2>&1
	done
done
"$weir" diff --json "$out"/eager-*.weir -- "$out"/compiled-*.weir >"$out/forward.json"
python3 - "$out" <<-'END' || failed=1
	import json, statistics, sys
	out = sys.argv[1]
	eager, compiled = (statistics.median(map(float, open(f"{out}/{way}.plain"))) for way in ("eager", "compiled"))
	forward = next(p for p in json.load(open(out + "/forward.json"))["phases"] if p["name"] == "forward")
	print("A forward, compiled against eager: %.3f / %.3f ms = %.2f by itself, %.2f by weir diff (%s)"
	    % (eager, compiled, eager / compiled, forward["factor"], forward["verdict"]))
	sys.exit(abs(forward["factor"] / (eager / compiled) - 1) > 0.15 or forward["verdict"] != "faster")
END
echo
"$weir" diff "$out"/eager-*.weir -- "$out"/compiled-*.weir | sed -n '/^Phases/,/^$/p'
echo "under weir record --gpu:"
"$weir" diff "$out/eager.weir" "$out/compiled.weir"
exit $failed
