#!/bin/sh
# What kernels are given, on a real driver: equal scalars have one key wherever the buffers lie and
# whichever the run, other scalars another; and what keeping them costs.
#
#	sh tests/gpu/args.sh BUILD [WORK]
#
# Needs a GPU, nvcc and python3; what needs PyTorch is left out without it.  Exits 1 unless all holds.
set -u
build=$(cd "$1" && pwd)
work=${2:-$(mktemp -d)}
here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir
failed=0

nvcc -o "$work/args" "$here/programs/args.cu" || exit 3
cat >"$work/check.py" <<'END'
import collections, json, sys

def launches(path):
    for line in open(path):
        call = json.loads(line)
        if call["class"] == "launch" and "kernel" in call["args"] and call["api"] == "driver":
            yield call["args"]

def keys(path, word):
    found = collections.Counter()
    for args in launches(path):
        if word in args["kernel"]:
            found[args.get("key"), tuple(args.get("scalars", ()))] += 1
    return found

bad = 0
def must(what, holds, shown=""):
    global bad
    bad += not holds
    print("%-4s %s %s" % ("ok" if holds else "BAD", what, shown))
END

record() { # NAME OPTIONS -- PROGRAM…
	name=$1
	shift
	"$weir" record -q --args -o "$work/$name.weir" "$@" >"$work/$name.out" 2>&1 ||
		{ echo "BAD  recording $name: $(tail -n 1 "$work/$name.out")"; failed=1; return; }
	"$weir" export -f ndjson -o "$work/$name.ndjson" "$work/$name.weir"
}

record one -- "$work/args"
record two -- "$work/args"
record times --gpu -- "$work/args"
cat "$work/check.py" - >"$work/cuda.py" <<'END'
one, two = sys.argv[1:]
axpy = keys(one, "axpy")
must("axpy has a key a scalar", len(axpy) == 4 and set(axpy.values()) == {25}, dict(axpy))
must("its scalars are n and a", {s for _, s in axpy} == {(1000 + i, 0x40000000) for i in range(4)})
scale = keys(one, "scale")
must("a structure has a key a value", len(scale) == 2 and set(scale.values()) == {50}, dict(scale))
must("its integers are read", {s[:2] for _, s in scale} == {(16, 32), (16, 33)})
must("a kernel without parameters has one key", len(keys(one, "nothing")) == 1)
same = all(keys(one, k) == keys(two, k) for k in ("axpy", "scale", "nothing"))
must("another run has the same keys", same)
sys.exit(bad != 0)
END
python3 "$work/cuda.py" "$work/one.ndjson" "$work/two.ndjson" || failed=1

"$weir" export -f dataset -o "$work/kernels.csv" "$work/times.weir" || failed=1
python3 - "$work/kernels.csv" <<'END' || failed=1
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
axpy = [r for r in rows if r["kernel"].startswith("axpy")]
good = len(rows) == 300 and len(axpy) == 100
good = good and all(r["key"] and r["regs"] and r["local"] != "" and r["cc"] for r in axpy)
good = good and {r["args0"] for r in axpy} == {"1000", "1001", "1002", "1003"}
print("%-4s the dataset has all 300 kernels, with arguments and attributes" % ("ok" if good else "BAD"))
sys.exit(not good)
END

if python3 -c 'import torch' 2>/dev/null; then
	record torch -- python3 "$here/programs/torch_args.py"
	cat "$work/check.py" - >"$work/torch.py" <<'END'
added = {k: n for k, n in keys(sys.argv[1], "vectorized_elementwise").items() if n >= 50}
must("PyTorch's addition has a key a size and scalar", len(added) == 3, added)
kept = sum(n for (k, _), n in keys(sys.argv[1], "").items() if k)
all_ = sum(keys(sys.argv[1], "").values())
must("arguments are known of all launches", kept == all_, "%d of %d" % (kept, all_))
sys.exit(bad != 0)
END
	python3 "$work/torch.py" "$work/torch.ndjson" || failed=1
fi

if [ -x "$build/bin/bench-launch" ]; then
	echo "what it costs (nanoseconds a launch):"
	for run in 1 2 3; do
		for call in launch params; do
			"$weir" record -q --level=all -o "$work/b.weir" -- "$build/bin/bench-launch" \
				-c $call "$work/b.weir"
		done
	done
fi
exit $failed
