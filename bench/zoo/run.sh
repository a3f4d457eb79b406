#!/bin/sh
# Runs the zoo on a GPU under `weir record` and leaves data sets, ceilings and a summary:
#
#	sh bench/zoo/run.sh BUILD OUT [SECONDS] [PART...]
#
# Parts: check ceiling zoo torch triton models repeat contend; all but check when none is named.
# SECONDS (520) is for everything together: parts get shares of it, and one whose turn comes too
# late is left out, which the summary says.  OUT gets at most 8 files, each of at most 12 MB:
# README.md says what they hold.  Needs nvcc; torch and triton parts need PyTorch.  Nothing is set
# on the GPU; its clocks are only read.  ZOO_SEED (1) draws other shapes.
set -u
[ $# -ge 2 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
build=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" && out=$(cd "$2" && pwd) || exit 2
shift 2
total=520
case ${1:-} in [0-9]*) total=$1; shift ;; esac
seed=${ZOO_SEED:-1}
parts=${*:-ceiling zoo torch triton models repeat contend}
here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir
cuda=${CUDA_HOME:-/usr/local/cuda}
PATH=$PATH:$cuda/bin
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$cuda/lib64
export PATH LD_LIBRARY_PATH PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
cd "$work" || exit 1
poll=
trap '[ -z "$poll" ] || kill "$poll" 2>/dev/null; rm -rf "$work"' EXIT
largest=12000000
begin=$(cut -d. -f1 /proc/uptime)

elapsed() { echo $(($(cut -d. -f1 /proc/uptime) - begin)); }
say() { echo "$*" | tee -a "$out/summary.txt"; }
wanted() { case " $parts " in *" $1 "*) ;; *) return 1 ;; esac; }
# Seconds of a part that has so many of 520.
share() { echo $((total * $1 / 520 > 0 ? total * $1 / 520 : 1)); }
device() { nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu,clocks_event_reasons.active --format=csv,noheader "$@" 2>/dev/null; }

# Is there time for one more part of so many seconds?
room() {
	[ $(($(elapsed) + $2 / 2)) -lt "$total" ] && return 0
	say "$1: left out, no time ($(elapsed) of $total s are over)"
	return 1
}

args=
"$weir" record --help 2>/dev/null | grep -q -- '--args' && args=--args
format=csv
"$weir" export --help 2>/dev/null | grep -q dataset && format=dataset

record() { # NAME LIMIT PROGRAM...: NAME.weir, and a line of the summary
	name=$1 limit=$2
	shift 2
	started=$(cut -d' ' -f1 /proc/uptime)
	# shellcheck disable=SC2086 # $args is one word or none
	"$weir" record --gpu $args --level=work --quiet -o "$work/$name.weir" -- \
		timeout "$limit" "$@" >"$work/$name.out" 2>"$work/$name.err"
	status=$?
	tail -n 3 "$work/$name.out" | sed 's/^/	/' | tee -a "$out/summary.txt"
	[ ! -s "$work/$name.err" ] || head -n 30 "$work/$name.err" | cut -c1-200 | sed 's/^/	! /' |
		tee -a "$out/summary.txt"
	say "$name: status $status, uptime $started to $(cut -d' ' -f1 /proc/uptime), GPU $(device | head -n 1)"
}

# Launches, kernels and device times of a trace, from its report.
described() {
	"$weir" report --json -n 0 "$1" 2>/dev/null | python3 -c '
import json, sys
r = json.load(sys.stdin)
t = r["totals"]
kernels = r.get("kernels") or []
print("\t%d launches, %d kernels by name, %d device times, %d calls lost, %.1f s" % (
    t["launches"], len(kernels), t.get("device_kernels", 0), t["lost"], t["wall_ns"] / 1e9))
for w in r.get("warnings", [])[:3]:
    print("\t!", w if isinstance(w, str) else json.dumps(w))' 2>/dev/null || echo "	no report of $1"
}

squeeze() { # LEVEL
	if command -v xz >/dev/null; then
		xz -T0 "-$1"
	else
		python3 -c 'import lzma, shutil, sys
with lzma.open(sys.stdout.buffer, "wb", preset=2) as f:
    shutil.copyfileobj(sys.stdin.buffer, f)'
	fi
}

too_large() { [ "$(stat -c %s "$1")" -gt $largest ]; }

# NAME FILE...: an archive; if it is too large packed more tightly, which takes one core and long, and
# then without its largest file.
pack() {
	archive=$1
	shift
	tar -cf - "$@" | squeeze 6 >"$archive.tar.xz"
	too_large "$archive.tar.xz" && tar -cf - "$@" | squeeze 9 >"$archive.tar.xz"
	while too_large "$archive.tar.xz" && [ $# -gt 1 ]; do
		big=$(ls -S "$@" | head -n 1)
		say "$archive: $big is left out, the archive would have more than $largest bytes"
		keep=''
		for f; do [ "$f" = "$big" ] || keep="$keep $f"; done
		# shellcheck disable=SC2086 # names without spaces, made above
		set -- $keep
		tar -cf - "$@" | squeeze 9 >"$archive.tar.xz"
	done
	mv "$archive.tar.xz" "$out/"
}

# NAME PART...: data sets and side tables of the parts that ran.
deliver() {
	archive=$1 files=''
	shift
	for part; do
		[ -f "$work/$part.weir" ] || continue
		said=$(described "$work/$part.weir")
		say "$part:"
		say "$said"
		"$weir" export -f $format -o "$work/$part.samples.csv" "$work/$part.weir" 2>>"$work/export.err" ||
			say "$part: not exported: $(tail -n 1 "$work/export.err")"
		case $part in torch | triton | resnet | decoder | opt)
			sh "$here/launches.sh" "$weir" "$part.weir" >"$part.launches.csv" 2>>export.err ;;
		esac
		for f in "$part.samples.csv" "$part.launches.csv" "$part".side*.csv; do
			[ -s "$f" ] && files="$files $f"
		done
	done
	[ -z "$files" ] && return
	# shellcheck disable=SC2086
	pack "$archive" $files
}

# Traces are packed already: as many as fit into one file, smallest first.
deliver_traces() {
	files='' sum=0
	# shellcheck disable=SC2045 # names of ours, by size
	for f in $(ls -Sr ./*.weir 2>/dev/null); do
		bytes=$(stat -c %s "$f")
		sum=$((sum + bytes + 1024))
		if [ $sum -lt $((largest - 10240)) ]; then
			files="$files $f"
		else
			say "traces: $f ($bytes bytes) does not fit"
			sum=$((sum - bytes - 1024))
		fi
	done
	# shellcheck disable=SC2086
	[ -z "$files" ] || tar -cf "$out/traces.tar" $files
}

make_zoo() {
	(cd "$work" && make -s -j8 -f "$here/Makefile" HERE="$here" all) >"$work/make.out" 2>&1 ||
		(cd "$work" && make -s -k -f "$here/Makefile" HERE="$here" all) >>"$work/make.out" 2>&1
	for program in zoo ceiling; do
		[ -x "$work/$program" ] || say "$program: not built: $(grep -m 1 -i error "$work/make.out")"
	done
}

run_check() { # on the GPU: right answers, then memory and races
	say "check: $("$work/zoo" --check --shapes 3 >"$work/check.out" 2>&1 && echo right || echo WRONG)," \
		"$(grep -c '^ok' "$work/check.out") kernels"
	grep -v '^ok' "$work/check.out" | head -n 10 | tee -a "$out/summary.txt"
	for tool in memcheck racecheck initcheck; do
		found=$(timeout 120 compute-sanitizer --tool $tool --print-limit 5 "$work/zoo" --check --shapes 1 2>&1)
		say "$tool: $(echo "$found" | tail -n 1)"
		echo "$found" | grep -E '^=+ +(Error|Invalid|Race|Uninit|Warning)' | head -n 5 | tee -a "$out/summary.txt"
	done
	timeout 180 python3 "$here/triton_zoo.py" --check >"$work/triton-check.out" 2>&1
	say "triton: $(grep -c '^ok' "$work/triton-check.out") right," \
		"$(grep -c '^BAD' "$work/triton-check.out") wrong"
	grep -v '^ok' "$work/triton-check.out" | head -n 10 | tee -a "$out/summary.txt"
}

run_contend() {
	cp "$work/zoo" "$work/zoo-alone"
	cp "$work/zoo" "$work/zoo-left"
	cp "$work/zoo" "$work/zoo-right"
	record alone 60 "$work/zoo-alone" --part contend --app zoo-alone --seconds "$(share 5)" \
		--csv "$work/alone.side.csv"
	# shellcheck disable=SC2016 # for the inner shell
	record contend 60 sh -c '"$1/zoo-left" --part contend --app zoo-left --seed 2 --seconds $2 \
		--csv "$1/contend.side-left.csv" & "$1/zoo-right" --part contend --app zoo-right --seed 3 \
		--seconds $2 --csv "$1/contend.side-right.csv"; wait' sh "$work" "$(share 10)"
}

python_part() { # NAME LIMIT FILE ARGUMENT...
	name=$1 limit=$2 file=$3
	shift 3
	record "$name" "$limit" python3 "$here/$file" "$@" --seed "$seed" --app "$name" --csv "$work/$name.side.csv"
}

run_models() {
	for model in resnet decoder opt train; do
		room "$model" 10 || continue
		python_part $model 90 models.py $model --seconds "$(share 12)" --calls 150
	done
}

: >"$out/summary.txt"
say "weir $("$weir" version 2>/dev/null | head -n 1), parts: $parts, seconds: $total, format: $format"
[ -n "$args" ] || say "this weir cannot keep arguments (--args): samples have none"
[ $format = dataset ] || say "this weir has no data sets (export -f dataset): samples are calls, as csv"
say "$(nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit,ecc.mode.current --format=csv,noheader 2>&1 | head -n 1)"
say "processes on the GPU: $(nvidia-smi --query-compute-apps=pid,name --format=csv,noheader 2>/dev/null | wc -l)"
say "uptime $(cut -d' ' -f1 /proc/uptime) is $(date -u +%Y-%m-%dT%H:%M:%S.%NZ)"
device -l 1 >"$work/clocks.csv" &
poll=$!

make_zoo
say "built in $(elapsed) s"
if [ -x "$work/zoo" ]; then
	wanted check && run_check
	wanted ceiling && [ -x "$work/ceiling" ] && room ceiling 15 &&
		timeout 60 "$work/ceiling" >"$out/ceiling.json" 2>>"$out/summary.txt" && cat "$out/ceiling.json"
	wanted zoo && room zoo 75 &&
		record zoo "$(share 150)" "$work/zoo" --seconds "$(share 90)" --seed "$seed" --csv "$work/zoo.side.csv"
fi
wanted torch && room torch 60 &&
	python_part torch "$(share 210)" torch_zoo.py --seconds "$(share 150)"
wanted triton && room triton 60 &&
	python_part triton "$(share 180)" triton_zoo.py --seconds "$(share 60)"
wanted models && run_models
if [ -x "$work/zoo" ]; then
	wanted repeat && room repeat 40 &&
		record repeat "$(share 60)" "$work/zoo" --part repeat --app repeat --seconds "$(share 20)" \
			--csv "$work/repeat.side.csv"
	wanted contend && room contend 20 && run_contend
fi
kill "$poll" 2>/dev/null
poll=

say "recorded in $(elapsed) s"
deliver zoo zoo
deliver python torch triton
deliver models resnet decoder opt
deliver repeat repeat alone contend
deliver_traces
sed -n '/Compiling entry/s/.*function .\([^'\'' ]*\).*/\1/p; /spill\|Used/s/^ptxas info *: *//p' ./*.log \
	>registers.txt 2>/dev/null
# shellcheck disable=SC2046 # names without spaces
pack machine clocks.csv registers.txt $(ls ./*.out ./*.err 2>/dev/null)
say "done in $(elapsed) s"
ls -l "$out" | tail -n +2
