#!/bin/sh
# What device times cost a launch of an empty kernel: CUPTI's of all launches, beside CUPTI alone whose
# records nobody reads, and events around one in 64 or 8.  CUPTI is on or off for a whole process, "plain" launches included, so processes take
# turns; with and without samples, batches of one process do.
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
"${CC:-cc}" -shared -fPIC -o "$work/bare_cupti.so" "$(dirname "$0")/programs/bare_cupti.c" || exit 1
: >"$work/cost"
for _ in $(seq "$runs"); do
	for how in none bare-CUPTI gpu gpu=sample:64 gpu=sample:8; do
		option=
		preload=
		case $how in
		gpu*) option=--$how ;;
		bare*) preload=$work/bare_cupti.so ;;
		esac
		# shellcheck disable=SC2086 # none is no argument
		printf '%s %s\n' $how "$(BARE_CUPTI=bench-launch LD_PRELOAD=$preload "$weir" record -q \
			--level=all $option -o "$work/c.weir" -- "$build/bin/bench-launch" -n 200 \
			"$work/c.weir")" >>"$work/cost"
	done
done
exec "${PYTHON:-python3}" - "$work/cost" <<'END'
import re, statistics, sys
seen = {}
for line in open(sys.argv[1]):
    how = line.split()[0]
    value = dict((k, float(v)) for k, v in re.findall(r"(\w+) adds +(-?[\d.]+)", line))
    value["plain"] = float(re.search(r"plain +([\d.]+)", line)[1])
    if "sample" in value:
        value["sample - full"] = value["sample"] - value["full"]
    value["recorded"] = value["plain"] + value.get("sample", value["full"])
    for what in ("plain", "full", "sample - full", "recorded"):
        if what in value:
            seen.setdefault((how, what), []).append(value[what])
print("%-14s %-14s %s" % ("", "ns a launch", "median (quartiles) of %d processes" % len(seen["none", "plain"])))
middle = {}
for key, values in seen.items():
    low, middle[key], high = statistics.quantiles(values, n=4)
    print("%-14s %-14s %7.0f (%.0f - %.0f)" % (*key, middle[key], low, high))
for how, what in list(middle):
    if what == "recorded" and how != "none":
        print("%s adds %.0f to full recording, from process to process" % (how, middle[how, what] - middle["none", what]))
END
