# Compares what weir says of a generated trace with expected/CASE.
#
#	golden.sh BUILD CASE        one case; exit status 1 and a diff when it differs
#	golden.sh BUILD --update    writes all expected files
set -eu
build=$(cd "$1" && pwd) case=$2
here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir
work=$(mktemp -d)
export LC_ALL=C # as what a report draws depends on that
trap 'rm -rf "$work"' EXIT
cd "$work"

make_traces() {
	"$build/tests/gen-trace" -n 16000 -t 2 -s 7 -p golden.weir 2>/dev/null
	"$build/tests/gen-trace" -n 0 -t 1 -s 7 empty.weir
	"$build/tests/gen-trace" -n 12000 -t 2 -s 8 -p other.weir 2>/dev/null
	"$weir" import -q -o kineto.weir "$here/kineto/eager.json"
	# Bytes 176 to 179 say that only one launch in so many was timed.
	cp kineto.weir sampled.weir
	printf '\010' | dd of=sampled.weir bs=1 seek=176 conv=notrunc 2>/dev/null
	forwards 457 1 >eager.json
	forwards 250 2 >compiled.json
	"$weir" import -q -o eager.weir eager.json
	"$weir" import -q -o compiled.weir compiled.json
}

# A loop of torch.profiler: ten kernels a forward, of so many microseconds, and the host far ahead.
forwards() { # MICROSECONDS SEED
	awk -v us="$1" -v seed="$2" 'BEGIN {
		print "{\"traceEvents\": ["
		for (i = 0; i < 12; i++) {
			name = i < 2 ? "warming up" : "forward"
			event("user_annotation", name, 7, 1000 + i * 100, 90, "\"External id\": " i + 1)
			for (k = 0; k < 10; k++) {
				id = ++correlation
				event("cuda_runtime", "cudaLaunchKernel", 7, 1001 + i * 100 + k * 8, 5, "\"correlation\": " id)
				dur = us * (i < 2 ? 4 : 1) * (1 + (id * 7 + seed) % 11 / 1000)
				at = at < 1010 ? 1010 : at
				event("kernel", k % 2 ? "gemm" : "softmax", 13, at, dur,
					"\"correlation\": " id ", \"device\": 0, \"stream\": 13, \"context\": 1")
				at += dur
			}
		}
		print "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 7, \"args\": {\"name\": \"python\"}}]}"
	}
	function event(cat, name, tid, ts, dur, args) {
		printf "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, \"args\": {%s}},\n",
			cat, name, cat == "kernel" ? 0 : 7, tid, ts, dur, args
	}'
}

# Prints a case; binary formats as hexadecimal of their beginning and a checksum.
say() {
	case $1 in
	text) "$weir" report golden.weir ;;
	all) "$weir" report -n 0 golden.weir ;;
	json) "$weir" report --json golden.weir ;;
	csv | ndjson | chrome) "$weir" export -f "$1" golden.weir | head -n 60 ;;
	perfetto)
		"$weir" export -f perfetto -o out.perfetto golden.weir
		od -A d -t x1 -N 2048 out.perfetto
		cksum <out.perfetto
		;;
	empty) "$weir" report empty.weir ;;
	kineto) "$weir" report -n 0 kineto.weir ;;
	kineto-json) "$weir" report --json kineto.weir ;;
	training)
		"$weir" import -q -o training.weir "$here/kineto/training.json"
		"$weir" report -n 0 training.weir | sed -n '/^Kernels by/,/^Layers/p' | cut -c 1-120
		"$weir" report --json training.weir |
			sed -n 's/.*"name": "\([^"]\{1,60\}\).*"flops": \([0-9]*\),.*"unit": "\(.*\)", "flops_share": \([^,]*\),.*/\2 \3 \4 \1/p'
		;;
	diff)
		"$weir" diff --fail-on 'p95 > +5%' --fail-on 'launches > 1000000' golden.weir other.weir ||
			echo "exit status $?"
		;;
	diff-json) "$weir" diff --json --fail-on 'errors > 0' golden.weir other.weir kineto.weir -- \
		other.weir golden.weir kineto.weir || [ $? = 1 ] ;;
	phases) "$weir" diff --fail-on 'phase p50 of forward > +1%' eager.weir compiled.weir ;;
	phases-json) "$weir" diff --json eager.weir compiled.weir | sed -n '/"phases"/,/^\t]/p' ;;
	sampled)
		for command in report hints memory 'diff kineto.weir' 'diff sampled.weir' 'flame' \
			'flame -f svg' 'export -f chrome' 'export -f ndjson' 'export -f dataset' \
			'export -f dataset-card'; do
			echo "---- weir $command"
			LC_ALL=C "$weir" $command sampled.weir 2>&1 | grep -v "^<g class\|recorded:" |
				cut -c 1-160 | head -n 28
		done
		;;
	flame) "$weir" flame golden.weir ;;
	flame-svg) "$weir" flame -f svg kineto.weir ;;
	flame-json) "$weir" flame -f speedscope kineto.weir ;;
	memory) LC_ALL=C "$weir" memory golden.weir ;;
	memory-blocks) LC_ALL=C.UTF-8 "$weir" memory -n 3 golden.weir ;;
	memory-json) "$weir" memory --json golden.weir | head -n 60 ;;
	page) "$weir" html --items 1000 -o page.html golden.weir && "$weir" html --items 1000 -o two.html golden.weir -- other.weir &&
		for page in page.html two.html; do
			echo "$page: $(grep -c '^</html>$' $page) end, recordings: $(grep -o '"timeline":' $page | wc -l)"
		done ;;
	server) "$weir" report "$here/serve/served.weir" | sed 1d | sed '/^$/q' ;;
	requests) "$weir" report --only requests -n 12 "$here/serve/served.weir" "$here/serve/beside.weir" ;;
	request) # in a batch beside others, in the queue of another model, refused
		for id in 98 17 7; do
			"$weir" report --request $id "$here/serve/served.weir" "$here/serve/beside.weir"
		done
		;;
	request-json) "$weir" report --json --request 17 "$here/serve/served.weir" ;;
	otlp) "$weir" export -f otlp "$here/serve/served.weir" | head -n 90 ;;
	wrong) echo "not what is expected of text" ;;
	esac
}

make_traces
if [ "$case" = --update ]; then
	for name in text all json csv ndjson chrome perfetto empty kineto kineto-json training diff diff-json phases phases-json \
		sampled flame flame-svg flame-json memory memory-blocks memory-json page server requests request request-json otlp; do
		say "$name" >"$here/expected/$name"
	done
	exit 0
fi
say "$case" >got
[ "$case" = wrong ] && case=text
diff -u "$here/expected/$case" got
