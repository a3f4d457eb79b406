# Each question of api/question.tbl: its command does what the table says, `weir help WORD` and `weir WORD` lead to it,
# and docs/howto/questions.md has it.
#
#	questions.sh BUILD SOURCE            all of that
#	questions.sh BUILD SOURCE --update   writes the page's table anew
set -u
build=$(cd "$1" && pwd) source=$(cd "$2" && pwd)
page=$source/docs/howto/questions.md
table() {
	awk -F ' [|] ' '
		/^#/ || !NF { next }
		{ for (i = 1; i <= 6; i++) { gsub(/^ +| +$/, "", $i); gsub(/[|]/, "\\|", $i) } }
		{ print "| " ++n " | " $4 " | " $2 " | " ($3 == "-" ? "–" : "`" $3 "`") " |" }' "$source/api/question.tbl"
}
if [ "${3-}" = --update ]; then
	table >"$page.rows"
	awk -v rows="$page.rows" '
		/^\| [0-9]+ \|/ { if (!done++) while ((getline line <rows) > 0) print line; next }
		{ print }' "$page" >"$page.new"
	rm "$page.rows"
	mv "$page.new" "$page"
	exit 0
fi
[ -e "$build/lib/weir/sim/libcuda.so.1" ] || {
	echo "the simulated driver is not built"
	exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/root"
cd "$work/root" || exit 1
cp "$build/examples/vecadd" app
export PATH="$build/bin:$PATH" LD_LIBRARY_PATH="$build/lib/weir/sim" LC_ALL=C.UTF-8
unset WEIR WEIR_SIM
mkdir -m 700 "$work/run"
export XDG_RUNTIME_DIR="$work/run"
bad=0 answered=0 all=0
wrong() {
	echo "$*"
	bad=1
}

table | while IFS= read -r row; do
	grep -qxF -- "$row" "$page" || echo "the page lacks: $row"
done >"$work/lacking"
[ ! -s "$work/lacking" ] || wrong "$(cat "$work/lacking"); sh tests/docs/questions.sh BUILD SOURCE --update writes it anew"

weir record -q -o app.weir -- ./app >/dev/null || wrong "app can't be recorded"
# A collective operation, of which 600 us of 1 ms are beside a kernel.
cat >nccl.json <<'END'
{"traceEvents": [
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1000, "dur": 800,
 "args": {"device": 0, "context": 1, "stream": 7, "correlation": 1, "grid": [8, 1, 1], "block": [128, 1, 1]}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "pid": 0, "tid": 20,
 "ts": 1200, "dur": 1000,
 "args": {"device": 0, "context": 1, "stream": 20, "correlation": 2, "grid": [8, 1, 1], "block": [128, 1, 1]}}
]}
END
path_of() { # EXAMPLE
	case $1 in
	app) echo app.weir ;;
	nccl) echo nccl.json ;;
	*) echo "$source/tests/golden/$1" ;;
	esac
}
grep -v '^#' "$source/api/question.tbl" | grep ' | ' >"$work/rows"
while IFS= read -r row; do
	field() { printf '%s\n' "$row" | awk -F ' [|] ' -v n="$1" '{ gsub(/^ +| +$/, "", $n); print $n }'; }
	words=$(field 1) here=$(field 3) question=$(field 4) example=$(field 5) expected=$(field 6)
	all=$((all + 1))
	for word in $words; do
		weir "$word" >"$work/said" 2>&1 </dev/null
		weir help "$word" >"$work/help" 2>&1 || wrong "weir help $word: exit $?"
		[ "$here" = - ] && here_text=$question || here_text=$(printf '%s\n' "$here" | sed "s,PREFIX,$build,")
		# A word that is a command's name has that command's help.
		grep -qF -- "$here_text" "$work/help" || grep -q "^weir $word:" "$work/help" ||
			wrong "weir help $word does not lead to: $here_text"
		grep -q "^weir: there is no command '$word'. Try .*$(printf '%s' "$here_text" | cut -c1-12)" "$work/said" ||
			[ "$here" = - ] || weir "$word" --help >/dev/null 2>&1 || wrong "weir $word does not lead to: $here"
	done
	weir help questions | grep -qF -- "$question" || wrong "weir help questions lacks: $question"
	[ "$here" != - ] || continue
	answered=$((answered + 1))
	set -- $example
	command=$(printf '%s\n' "$here" | sed "s,PREFIX,$build,; s,FILE,$(path_of "$1"),; s,BEFORE,$(path_of "$1"),; s,AFTER,$(path_of "${2-$1}"),")
	sh -c "$command" >"$work/out" 2>&1 </dev/null || wrong "exit $?: $command: $(head -3 "$work/out")"
	[ "$expected" = - ] || grep -qE -- "$expected" "$work/out" || wrong "no /$expected/: $command: $(head -5 "$work/out")"
done <"$work/rows"
echo "$answered of $all questions are answered"
[ "$all" -eq 68 ] && [ "$answered" -eq 60 ] || wrong "68 questions and 60 answers are promised"
for word in share quota mps pool prometheus monitor; do
	weir help "$word" | grep -qE "weir (run|monitor)" || wrong "weir help $word names no command for it"
done
exit $bad
