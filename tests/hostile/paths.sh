# Sourced by the scripts here, with the build folder as $1: where things are, and what is in a trace.
build=$(cd "$1" && pwd) || exit 1
libs=$build/tests/hostile/libs
programs=$build/tests/hostile/programs
hook=$build/lib/weir/libweir.so
weir=$build/bin/weir
sim=$build/lib/weir/sim

# A directory for the run; it stays when the test fails.
make_work() {
	work=$(mktemp -d "${TMPDIR:-/tmp}/hostile.$1.XXXXXX") || exit 1
}

# Keeps the shared memory in $work/share until let_go, also when no program has it any more.
keep_share() {
	rm -f keeper.out
	WEIR=share=$work/share "$programs/regulated" keeps >keeper.out 9>&- &
	keeper=$!
	until [ -s keeper.out ]; do sleep 0.05; done
}

let_go() {
	kill "$keeper"
	wait "$keeper" 2>/dev/null
}

need_hook() {
	[ -e "$hook" ] && [ -x "$weir" ] && return
	echo "libweir.so is not built"
	exit 77
}

# Prints the calls of a trace, as lines `function count`, and `range:NAME count`.
recorded() {
	"$weir" report --json --top=0 "$1" 2>"$work/report.err" |
		LC_ALL=C sed -n 's/^[^{]*{"name": "\(cu[A-Za-z0-9_]*\)", "api".*"count": \([0-9]*\),.*/\1 \2/p
			s/^[^{]*{"name": "\([^ ]*\)", "kind": "[a-z]*", "count": \([0-9]*\), .*/range:\1 \2/p'
}

# How often a trace has a function.
recorded_count() {
	recorded "$1" | awk -v name="$2" '$1 == name { n = $2 } END { print n + 0 }'
}

# It can be read, and what was entered is here, counted, or said to be lost.
check_readable() {
	"$weir" report --json "$1" >"$work/report.json" 2>"$work/report.err" || {
		echo "weir report $1: $(cat "$work/report.err")"
		return 1
	}
	! grep -E '"(missing|surplus)": [1-9]' "$work/report.json"
}
