# Every command over files that have something wrong: commands.sh BUILD ROUNDS [SEED].
#
# A round takes a trace, or a file of another tool's, changes it (mutate.h) and asks every command about
# it.  Each must leave with status 0, 1 or 2, within 10 seconds and 2 GiB, and without a word from a
# sanitizer; those are slow, and have a minute.  A file that breaks a command is kept, with its name.
# The same seed makes the same files.
set -u
build=$(cd "$1" && pwd) rounds=$2 seed=${3:-1}
here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir
mutate=$build/tests/fuzz/mutate_file
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-commands.XXXXXX") || exit 1
cd "$work" || exit 1
mkdir in kept
export ASAN_OPTIONS=exitcode=99:hard_rss_limit_mb=2048:allocator_may_return_null=1:detect_leaks=0
export UBSAN_OPTIONS=print_stacktrace=1:exitcode=99
export TMPDIR=$work
runs=0 bad=0

# A sanitizer wants more addresses than any limit would leave it.
limit=2097152 seconds=10
if grep -q __asan_init "$weir"; then limit=unlimited seconds=60; fi

# ask COMMAND...: of the file that is being tried.
ask() {
	runs=$((runs + 1))
	(
		ulimit -v $limit
		exec timeout $seconds "${WEIR_ASKED:-$weir}" "$@"
	) >out 2>err </dev/null
	status=$?
	case $status in
	0 | 1 | 2) ! grep -q 'runtime error\|Sanitizer' err && return ;;
	esac
	bad=$((bad + 1))
	cp "$file" "kept/$1-$round-${file##*/}"
	echo "round $round: weir $* left with status $status: $(head -c 2000 err)"
}

# Traces of GPUs, without GPUs, raw and packed; each other tool's files.
prepare() {
	cp "$here"/../golden/problems/*.weir "$here"/../golden/readme/*.weir in/
	"$build/tests/gen-trace" -n 3000 -t 2 -s 7 -p in/host.weir 2>/dev/null
	"$build/tests/gen-trace" -n 3000 -t 2 -s 8 in/raw.weir
	"$weir" import -q -o in/kineto.weir "$here/../golden/kineto/eager.json"
	cp "$here/../golden/kineto/eager.json" in/eager.json
	cp in/kineto.weir in/sampled.weir # bytes 176 to 179: one launch in so many was timed
	printf '\010' | dd of=in/sampled.weir bs=1 seek=176 conv=notrunc 2>/dev/null
	for variant in "$here"/../golden/variants/*.json; do
		"$weir" import -q -o "in/$(basename "$variant" .json).weir" "$variant" 2>/dev/null
		cp "$variant" in/
	done
	cp "$here"/corpus/import/alloc-* in/
	cp "$here/../../models/h200.weir-model" in/
	cp in/kineto.weir sound.weir
	cp in/h200.weir-model sound.weir-model
	"$weir" export -f dataset -o in/launches.csv in/occupancy_cliff.weir
}

look_at_trace() {
	for command in report hints memory; do
		ask $command "$file"
		ask $command --json "$file"
	done
	ask memory --replay -o out.svg "$file"
	ask memory --replay --json "$file"
	for format in perfetto chrome csv ndjson memory_viz dataset dataset-card otlp; do
		ask export -f $format -o out.file "$file"
	done
	rm -f out.db
	ask export -f sqlite -o out.db "$file"
	for format in svg folded speedscope; do
		ask flame -f $format -o out.file "$file"
	done
	ask flame --by=host "$file"
	ask html -o out.html "$file"
	ask html -n 10 -o out.html "$file"
	ask diff sound.weir "$file"
	ask diff --json "$file" sound.weir
	ask predict "$file"
	ask predict --json "$file"
	ask eval --split=prequential sound.weir-model "$file"
	ask ctl "$file" status
	ask ctl "$file" off
}

look_at() {
	case ${file##*/} in
	*.weir) look_at_trace ;;
	*.weir-model)
		ask eval --split=kernel "$file" sound.weir
		ask predict -m "$file" -g 100,1,1 -b 256,1,1 -k gemm -d H200 --json
		;;
	*.csv)
		ask eval --split=prequential sound.weir-model "$file"
		ask train -o out.model "$file"
		ask predict "$file"
		;;
	*)
		cp "$file" plain
		ask import -q -o out.weir plain
		gzip -c plain | head -c $((round * 37 % $(gzip -c plain | wc -c))) >cut.gz
		ask import -q -o cut.weir cut.gz
		[ ! -e out.weir ] || ask report out.weir
		[ ! -e cut.weir ] || ask report cut.weir
		rm -f out.weir cut.weir
		;;
	esac
}

prepare
set -- in/*
round=0
while [ $round -lt "$rounds" ]; do
	number=$((seed * 1000003 + round))
	shift $((number % $#))
	file=try.${1##*/}
	"$mutate" $number "$1" "$file" && look_at
	rm -f try.*
	set -- in/*
	round=$((round + 1))
done
echo "$rounds files, $runs commands, $bad broken"
if [ $bad = 0 ] || [ -n "${WEIR_ASKED-}" ]; then
	rm -rf "$work"
else
	echo "kept: $work/kept"
fi
[ $bad = 0 ] && [ $runs -gt 0 ]
