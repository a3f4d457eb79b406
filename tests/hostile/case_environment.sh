# What the user had set stays set, for the program and for its children; `weir record` adds its own.
. "$(dirname "$0")/paths.sh"
need_guest
make_work environment
cd "$work" || exit 1
bad=0

expect() {
	[ "$2" = "$3" ] && return
	echo "$1: '$2', expected '$3'"
	bad=1
}

value() {
	"$weir" record --quiet -o t.weir -- sh -c "printf '%s' \"\${$1-unset}\""
}

export LD_PRELOAD=$libs/libnext.so
case $(value LD_PRELOAD) in
"$LD_PRELOAD:$guest" | "$guest:$LD_PRELOAD" | "$guest $LD_PRELOAD" | "$LD_PRELOAD $guest") ;;
*) expect "LD_PRELOAD of the user is kept" "$(value LD_PRELOAD)" "with $LD_PRELOAD" ;;
esac
unset LD_PRELOAD
export LD_LIBRARY_PATH=/nowhere
expect "LD_LIBRARY_PATH" "$(value LD_LIBRARY_PATH)" /nowhere
unset LD_LIBRARY_PATH
expect "exit status" "$("$weir" record -q -o t.weir -- sh -c 'exit 37'; echo $?)" 37
expect "exit by signal" \
	"$(sh -c "$weir record -q -o t.weir -- sh -c 'kill -TERM \$\$'; echo \$?" 2>/dev/null)" 143
expect "arguments" "$("$weir" record -q -o t.weir -- printf '%s,' a 'b c' '' --quiet)" 'a,b c,,--quiet,'
expect "standard input" "$(echo hello | "$weir" record -q -o t.weir -- cat)" hello
"$weir" record -q -o t.weir -- ./no-such-program >out 2>&1
expect "a program that is not there" "$?" 127
grep -q no-such-program out || expect "its name is said" "$(cat out)" no-such-program
: >not-executable
"$weir" record -q -o t.weir -- ./not-executable >out 2>&1
expect "a file that is not executable" "$?" 126
[ $bad = 0 ] && rm -rf "$work"
exit $bad
