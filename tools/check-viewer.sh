# The page reads nothing of a trace as markup or code: check-viewer.sh ROOT.
# Scripts are parsed where node is there.
cd "$1" || exit 1
found=$(
	grep -nE '(inner|outer)HTML|insertAdjacentHTML|document\.write|DOMParser|(^|[^a-zA-Z.])eval\(|new Function' \
		viewer/*.js | sed 's/^/  text as markup or code: /'
	wc -l viewer/* | awk '$2 != "total" && $1 > 1000 { print "  " $2 ": over 1000 lines" }'
	command -v node >/dev/null && for script in viewer/*.js; do
		node --check "$script" 2>&1 | head -n 3 | sed "s|^|  |"
	done
)
[ -z "$found" ] || printf '%s\n' "$found"
[ -z "$found" ]
