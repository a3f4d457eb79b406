# The sentences of README, docs and man pages: 9 in 10 have at most 25 words, at most one in a hundred begins with Of,
# What, Who, Whoever, Where or Those (questions may), none has a semicolon, lines have at most 100 columns, and each item
# of a list begins a line.  In each folder at most one sentence in a hundred of its comments begins so.
# check-prose.sh ROOT BUILD [PAGE...].
tools=$(cd "$(dirname "$0")" && pwd)
cd "$1" || exit 1
shift $(($# > 1 ? 2 : 1))
named=$#
pages=${*:-$(ls ./*.md docs/*.md docs/*/*.md man/*.in 2>/dev/null | sed 's,^\./,,')}
bad=0
for page in $pages; do
	awk -f "$tools/prose.awk" "$page" | sort -rn | awk -F'\t' -v page="$page" '
		{
			length_of[NR] = $1
			text[NR] = $3
			if ($3 ~ /^(Of|What|Who|Whoever|Where|Those) [^?]*$/)
				opened[++openings] = $3
			if ($3 ~ /;/)
				joined[++semicolons] = $3
		}
		function show(why, s) { printf "  %s: %s: %s\n", page, why, substr(s, 1, 90) }
		END {
			tenth = int(NR / 10) + 1
			if (NR && length_of[tenth] > 25) {
				for (i = 1; i <= tenth && i <= 3; i++)
					show(length_of[i] " words", text[i])
				bad = 1
			}
			if (openings > 1 || openings * 100 > NR && openings) {
				for (i = 1; i <= openings && i <= 3; i++)
					show("begins with a clause", opened[i])
				bad = 1
			}
			for (i = 1; i <= semicolons && i <= 3; i++)
				show("semicolon", joined[i])
			exit bad || semicolons
		}' || bad=1
	awk -v page="$page" '
		/^[ \t]*```/ { code = !code }
		{
			line = $0
			gsub(/[\200-\277]/, "", line) # of UTF-8: bytes of a character but its first
		}
		!code && !/^[|@#]/ && length(line) > 100 && !/https?:/ {
			printf "  %s:%d: %d columns\n", page, FNR, length(line)
			if (++n == 3) exit
		}
		!code && !/^[|@#]/ && / \* \*\*/ {
			printf "  %s:%d: an item of a list inside a line\n", page, FNR
			n++
		}
		END { exit n > 0 }' "$page" || bad=1
done
[ "$named" != 0 ] || find api bench examples include python sim src tests tools viewer -type f 2>/dev/null |
	grep -E '(\.(c|h|cu|cuh|cc|cpp|js|css|py|sh|awk|tbl|cmake)|/CMakeLists.txt)$' | xargs awk -f "$tools/comments.awk" |
	awk -F'\t' '
		{
			folder = $1
			sub(/\/[^\/]*$/, "", folder)
			sentences[folder]++
			if ($2 ~ /^(Of|What|Who|Whoever|Where|Those) [^?]*$/)
				opened[folder, ++openings[folder]] = $1 ": begins with a clause: " substr($2, 1, 80)
		}
		END {
			for (folder in openings) {
				if (openings[folder] * 100 <= sentences[folder])
					continue
				for (i = 1; i <= openings[folder] && i <= 3; i++)
					print "  " opened[folder, i]
				bad = 1
			}
			exit bad
		}' || bad=1
exit $bad
