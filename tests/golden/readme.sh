# What the README shows is what is printed: readme.sh BUILD README.  Its commands that only read run on
# the recordings that it names; each line under one must be a line of its output, where "…" ends a line that
# was cut.  Lines may be left out.
build=$(cd "$1" && pwd) readme=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cp "$here"/readme/*.weir .
export PATH="$build/bin:$PATH"

sed 's/^    //; t; s/.*./#/' "$readme" >shown
: >output
bad=0 commands=0 lines=0
while IFS= read -r line; do
	case $line in
	'#' | '$ weir record'* | '$ weir html'* | '$ weir flame'*) : >output ;;
	'$ weir '*)
		sh -c "${line#??}" >output 2>&1 </dev/null
		commands=$((commands + 1))
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
[ "$commands" -ge 5 ] && [ "$lines" -ge 20 ] || {
	echo "only $commands commands and $lines lines were compared"
	bad=1
}
exit $bad
