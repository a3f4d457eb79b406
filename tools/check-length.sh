# Files of at most 800 lines, functions of at most 100; what nears that is reported:
# check-length.sh ROOT.
cd "$1" || exit 1
bad=0
long=$(find src sim include -name '*.[ch]' 2>/dev/null | xargs wc -l | awk '$2 != "total" && $1 > 800')
if [ -n "$long" ]; then
	printf '%s\n' "$long" | sed 's/^/  over 800 lines:/'
	bad=1
fi
command -v ctags >/dev/null || exit $bad
find src sim -name '*.c' | xargs ctags --languages=C --c-kinds=f --fields=+ne -f - 2>/dev/null |
	awk -F'\t' '{
		line = end = 0
		for (i = 4; i <= NF; i++) {
			if ($i ~ /^line:/) line = substr($i, 6)
			if ($i ~ /^end:/) end = substr($i, 5)
		}
		if (!line || !end) next
		length_ = end - line + 1
		count++
		over50 += length_ > 50
		if (length_ > 100) {
			print "  " $2 ":" line ": " $1 " has " length_ " lines"
			bad = 1
		}
	}
	END {
		printf "  %d functions, %d of more than 50 lines\n", count, over50
		exit bad
	}' || bad=1
exit $bad
