# What the README shows is what is printed: readme.sh BUILD README.  Its commands that only read run on
# the recordings that it names; each line under one must be a line of its output, where "…" ends a line that
# was cut.  Lines may be left out.  What is to be typed runs: on the simulated driver where it records, but
# for what needs PyTorch; commands and options that are named are there.
build=$(cd "$1" && pwd) readme=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cp "$here"/readme/*.weir .
export PATH="$build/bin:$PATH"

sed 's/^    //; t; s/.*./#/' "$readme" >shown
: >output
bad=0 commands=0 lines=0 typed=0
sim=$build/lib/weir/sim

run_typed() {
	[ -e "$sim/libcuda.so.1" ] || return 0
	cp "$build/examples/vecadd" app
	sh -c "export LD_LIBRARY_PATH='$sim'; $(printf %s "$1" | sed "s,PREFIX,$build,g")" >typed 2>&1 </dev/null &&
		return
	echo "exit status $? of: $1"
	cat typed
	bad=1
}

while IFS= read -r line; do
	case $line in
	'#' | '$ weir record'*) : >output ;;
	'weir '* | LD_PRELOAD=*)
		: >output
		typed=$((typed + 1))
		run_typed "$line"
		;;
	'$ weir '*)
		sh -c "${line#??}" >output 2>&1 </dev/null
		code=$?
		commands=$((commands + 1))
		case $code,$line in
		[!0]*,*' diff '* | 0,*) ;;
		*)
			echo "exit status $code of: $line"
			bad=1
			;;
		esac
		;;
	… | '') ;;
	*)
		[ -s output ] || continue
		lines=$((lines + 1))
		case $line in
		*…) grep -qF -- "${line%…}" output && continue ;;
		*) grep -qxF -- "$line" output && continue ;;
		esac
		echo "not printed: $line"
		bad=1
		;;
	esac
done <shown
# The table: `weir COMMAND --option`, or more options of the command above.
sed -n 's/^| … `/| `… /; s/^| `\([^`]*\)`.*/\1/p' "$readme" >named
command=
while read -r first word rest; do
	[ "$first" = weir ] && command=$word
	[ "$first" = … ] && rest="$word $rest"
	weir help "$command" >help 2>&1 || {
		echo "there is no command $command"
		bad=1
	}
	for option in $(printf '%s\n' "$rest" | grep -o -- '--[a-z][a-z-]*'); do
		grep -q -- "$option" help && continue
		echo "weir $command has no $option"
		bad=1
	done
done <named
[ -s slow.html ] && [ -s slow.svg ] || {
	echo "the page and the picture were not made"
	bad=1
}

[ "$typed" -ge 3 ] && [ "$commands" -ge 5 ] && [ "$lines" -ge 20 ] || {
	echo "only $typed and $commands commands and $lines lines were compared"
	bad=1
}
exit $bad
