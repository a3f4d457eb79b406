# C files are formatted as .clang-format says: check-format.sh ROOT.
cd "$1" || exit 1
format=$(command -v clang-format-14 || command -v clang-format) || {
	echo "clang-format-14 is missing"
	exit 1
}
find api include src sim tests examples bench -name '*.[ch]' 2>/dev/null |
	xargs "$format" --style=file --dry-run -Werror 2>&1 | grep -E 'error:' | cut -d: -f1 | sort |
	uniq -c | awk '{ print "  " $2 ": " $1 " lines; clang-format -i mends it"; bad = 1 }
		END { exit bad }'
