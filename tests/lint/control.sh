# Proves that a check can fail: control.sh NAME SOURCE.  Makes a small tree that the check passes,
# plants one violation, and requires that the check says so and names it.
name=$1 source=$(cd "$2" && pwd)
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
cd "$tree" || exit 1
mkdir -p viewer api include src/base src/trace src/model src/hook/core src/cmd sim tests man tools \
	build/lib/weir build/gen
cp "$source/.clang-format" .
cp "$source/src/modules.tbl" src/
cp "$source/tools/words.tbl" tools/
cp "$source/tools/hook-symbols.txt" \
	"$source/tools/hook-exports.txt" tools/

printf '/* One. */\n#pragma once\n\nint one(int x);\n' >src/base/one.h
printf '/* One. */\n#include "base/one.h"\n\nint one(int x)\n{\n\treturn x;\n}\n' >src/base/one.c
printf 'run | g | FILE | help\nhelp | g | | help\n' >api/command.tbl
printf 'run | out | o | F | - | help\n' >api/option.tbl
printf '@SYNOPSIS@\n@OPTIONS@\n.Sh EXAMPLES\n' >man/weir-run.1.in
printf '@COMMANDS@\n' >man/weir.1.in
printf 'memory  cuA  2000  call\n' >api/cuda.tbl
printf 'memory  cudaA  2000  call\n' >api/cudart.tbl
printf 'cublas  cublasA  -  1  open\n' >api/library.tbl
cp "$source/api/library.awk" api/

printf '"use strict";\n' >viewer/one.js

# A history of its own, which begins with the check.
subjects() {
	git init -q .
	git config user.name one
	git config user.email one@example.org
	cp "$source/tools/check-subjects.sh" tools/
	git add tools
	git commit -qm 'a subject of before, which nobody looks at: it may be as long as it likes to be'
	git commit -q --allow-empty -m 'docs, tools: bring one'
}
[ "$name" != subjects ] || subjects

hook() {
	own=$(awk '!/^#/ && NF { printf ", %s", $1 }' tools/hook-exports.txt)
	printf '%s\n' "int cuA, cudaA, cublasA$own;" "$1" |
		cc -w -shared -fPIC -x c - -o build/lib/weir/libweir.so
}
hook ''

# object FILE TEXT: a source of the injected library, and its object in the build.
object() {
	objects=build/src/hook/CMakeFiles/hook.dir
	mkdir -p "src/hook/$(dirname "$1")" "$objects/$(dirname "$1")"
	printf '%s\n' "$2" >"src/hook/$1"
	cc -c "src/hook/$1" -o "$objects/$1.o"
}
links() {
	object core/low.c 'int low; extern int hook_above; int *above(void) { return &hook_above; }'
	object mem/high.c 'extern int low; int high(void) { return low; }'
	object parts.c 'int hook_above, high(void); int top(void) { return high(); }'
}
[ "$name" != links ] || links

violate() {
	case $1 in
	atomics)
		printf 'static _Atomic int a;\nint f(void)\n{\n\treturn a;\n}\n' >src/trace/bad_plain.c
		printf 'static int a;\nint f(void)\n{\n\treturn __atomic_load_n(&a, 0);\n}\n' >src/trace/bad.c
		;;
	bans) printf 'int f(char *to) { return sprintf(to, "x"); }\n' >src/trace/bad.c ;;
	circles)
		for pair in bad:one_two one_two:three three:four four:bad; do
			printf '#include "base/%s.h"\n' ${pair#*:} >src/base/${pair%:*}.h
		done ;;
	cpu)
		printf 'long f(void)\n{\n\treturn __builtin_ia32_rdtsc();\n}\n' >src/trace/bad.c
		printf '/* Two. */\n' >src/trace/bad_aarch64.h
		;;
	dialect)
		printf '/* A file. */\nint f(int bad)\n{\n\treturn sizeof(bad);\n}\n' >src/trace/bad.c
		printf '"""A file."""\n\n# ---- %s ----\n' parts >tests/parted.py
		;;
	docs)
		mkdir -p docs/reference
		printf '| key | |\n|---|---|\n| `good` | |\n' >docs/reference/json-a.md
		printf 'See `%s`.\n' src/trace/bad.c 'weir run --out' 'weir run --wrong -- x --any' '--bare' 'weir fly --any' '--out' \
			'list[].good' 'good[].missing' >README.md
		printf 'The key `%s` is there.\n' good absent >>README.md
		;;
	exports) hook 'int cuStranger;' ;;
	format) printf 'int   f( int x ){ return x;}\n' >src/trace/bad.c ;;
	hook-calls) hook 'int getpid(void); int f(void) { return getpid(); }' ;;
	hook-symbols) hook 'void *malloc(unsigned long); void *f(void) { return malloc(1); }' ;;
	generated)
		printf '#include "gen/bad.h"\n' >build/bad.c
		printf '%s\n' 'rule make' ' command = echo >$out' 'rule cc' ' command = cc -MD -MF $out.d -c $in -o $out' \
			' depfile = $out.d' ' deps = gcc' 'build gen/bad.h: make' 'build bad.o: cc bad.c' >build/build.ninja
		ninja -C build gen/bad.h >/dev/null && ninja -C build bad.o >/dev/null
		;;
	headers) printf 'int f(uint64_t x);\n' >src/trace/bad.h ;;
	includes)
		printf '#include "model/report.h"\n' >src/trace/bad.c
		printf '#include "hook/meta/kernels.h"\n' >src/hook/core/worse.c
		printf 'early  late\nlate  base\n' >>src/modules.tbl
		;;
	links) object core/bad.c 'int high(void); int f(void) { return high(); }' ;;
	length) awk 'BEGIN { for (i = 0; i < 1001; i++) print "int v" i ";" }' >src/trace/bad.c ;;
	manual) printf 'fly | g | FILE | help\n' >>api/command.tbl ;;
	prose)
		printf 'Of the pages that are written so, none is easy to read; each has a second sentence in it.\n' >README.md
		printf '* **One.** It is short. * **Two.** It is here.\n' >>README.md
		printf '/*\n * One.  What it costs, in\n * bytes.\n */\n' >src/trace/bad.c
		printf '# One.  Of two, the first.\n' >tools/bad.sh
		printf 'def f():\n    """Where it is."""\n' >tests/bad.py
		;;
	subjects)
		for subject in 'ends here: of a commit' 'docs: say one more thing than the line of a commit should ever have to say' \
			'docs: noted it' 'docs: say one; say two' 'without a module'; do
			git commit -q --allow-empty -m "$subject"
		done
		git commit -q --allow-empty -m 'docs: say it'
		;;
	viewer) printf 'document.body.innerHTML = name;\n' >viewer/bad.js ;;
	words)
		printf '/* TO%s: later */\n' DO >src/trace/bad.c
		printf 'It %s.\n' foretells >man/bad.1.in
		;;
	*) echo "there is no violation for check-$1.sh; write one" && exit 1 ;;
	esac
}

named() {
	case $1 in
	atomics)
		awk '/bad.c/ { word = 1 } /bad_plain.c/ { plain = 1 } END { exit !(word && plain) }' ||
			! command -v clang-14 clang >/dev/null
		;;
	cpu) awk '/bad.c:3/ { a = 1 } /bad_x86_64.h is missing/ { b = 1 } END { exit !(a && b) }' ;;
	dialect) awk '/bad.c/ { a = 1 } /parted.py:3/ { b = 1 } END { exit !(a && b) }' ;;
	docs)
		awk '/no (src.trace.bad.c|option --wrong of weir run|option --bare|command weir fly)/ { n++ }
			/no key (list|missing|absent) in / { n++ }
			END { exit n != 7 || NR != 7 }' ;;
	exports) grep -q cuStranger ;;
	hook-calls) grep -q 'f uses getpid' ;;
	hook-symbols) grep -q malloc ;;
	includes)
		awk '/trace\/bad.c/ { a = 1 } /hook\/core may not include/ { b = 1 } /early stands below late/ { c = 1 }
			END { exit !(a && b && c) }'
		;;
	links) grep -q 'core/bad.c.* high, which is of hook/mem' ;;
	manual) grep -q weir-fly ;;
	prose)
		awk '/README.md.*begins/ { a = 1 } /semicolon/ { b = 1 } /an item/ { c = 1 }
			/(trace.bad.c:2|tools.bad.sh:1|tests.bad.py:2): begins/ { n++ } END { exit !(a && b && c && n == 3) }'
		;;
	subjects) awk '{ n++ } /say it:/ { n = 9 } END { exit n != 5 }' ;;
	words) awk '/bad.c/ { marks = 1 } /bad.1.in.*say: / { words = 1 } END { exit !(marks && words) }' ;;
	*) grep -q bad ;;
	esac
}

check=$source/tools/check-$name.sh
sh "$check" "$tree" "$tree/build" >out 2>&1 || {
	echo "check-$name.sh complains about a clean tree:"
	cat out
	exit 1
}
rm -f out
violate "$name"
output=$(sh "$check" "$tree" "$tree/build" 2>&1) && {
	echo "check-$name.sh did not see the violation"
	exit 1
}
printf '%s\n' "$output" | named "$name" || {
	echo "check-$name.sh failed without naming the violation: $output"
	exit 1
}
