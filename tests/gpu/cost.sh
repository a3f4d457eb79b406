#!/bin/sh
# What device times cost a launch of an empty kernel: CUPTI's of all launches, and events around one
# in 64 or 8.  Processes take turns, since one may run slower than the next from its start to its end;
# within each, batches do.  Prints the medians over all processes and their quartiles.
#
#	sh tests/gpu/cost.sh BUILD [WORK] [PROCESSES]
#
# Needs a GPU and CUPTI.
set -u
build=$(cd "$1" && pwd)
work=${2:-$(mktemp -d)}
runs=${3:-15}
weir=$build/bin/weir
mkdir -p "$work"
: >"$work/cost"
for run in $(seq "$runs"); do
	for how in none gpu gpu=sample:64 gpu=sample:8; do
		option=
		[ $how = none ] || option=--$how
		# shellcheck disable=SC2086 # none is no argument
		printf '%s %s\n' $how "$("$weir" record -q --level=all $option -o "$work/c.weir" -- \
			"$build/bin/bench-launch" -n 200 "$work/c.weir")" >>"$work/cost"
	done
done
exec "${PYTHON:-python3}" - "$work/cost" <<'END'
import re, statistics, sys
seen = {}
for line in open(sys.argv[1]):
    how = line.split()[0]
    values = dict((k, float(v)) for k, v in re.findall(r"(\w+) adds +(-?[\d.]+)", line))
    plain = float(re.search(r"plain +([\d.]+)", line)[1])
    seen.setdefault((how, "plain"), []).append(plain)
    for k, v in values.items():
        seen.setdefault((how, k), []).append(v)
    above = {"gpu": "cupti"}.get(how, "sample" if how != "none" else None)
    if above:
        seen.setdefault((how, above + " - full"), []).append(values[above] - values["full"])
    seen.setdefault((how, "whole"), []).append(plain + values.get(above, values["full"]))
print("%-14s %-14s %28s" % ("recorded", "ns a launch", "median (quartiles)"))
for (how, what), v in seen.items():
    q = statistics.quantiles(v, n=4)
    print("%-14s %-14s %10.1f (%.1f - %.1f)" % (how, what, statistics.median(v), q[0], q[2]))
whole = {how: statistics.median(v) for (how, what), v in seen.items() if what == "whole"}
for how in whole:
    if how != "none":
        print("%s against none, from process to process: %+.1f" % (how, whole[how] - whole["none"]))
END
