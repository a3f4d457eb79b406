# One dialect: sizeof of a thing without parentheses and of a type with them, no lines that only part a file, and a
# file begins by saying what it is for: check-dialect.sh ROOT.
cd "$1" || exit 1
parted=$(grep -rsnE '^[[:space:]]*(/\*|#|//) ?[-=*]{3,}' src sim include tests bench python viewer tools --include='*.[chjps]*')
printf '%s' "${parted:+$parted: a line that only parts a file
}"
find src sim tests bench -name '*.[ch]' 2>/dev/null | xargs awk '
	function is_type(word) {
		return word ~ /^(const|struct|union|enum|unsigned|signed|int|char|short|long|double|float|void|bool)$/ ||
			word ~ /^[a-z0-9_]+_t$/ || word ~ /^[A-Z]/
	}
	{
		text = $0
		while (match(text, /sizeof\(\**[A-Za-z_][A-Za-z0-9_.>[\]-]*\)/)) {
			inside = substr(text, RSTART + 7, RLENGTH - 8)
			text = substr(text, RSTART + RLENGTH)
			word = inside
			gsub(/^\*+/, "", word)
			sub(/[^A-Za-z0-9_].*/, "", word)
			if (text !~ /^(\[|\.|->|\()/ && !is_type(word)) {
				print "  " FILENAME ":" FNR ": sizeof " inside ", without parentheses"
				bad = 1
			}
		}
	}
	FNR == 1 && !/^\/\*/ {
		print "  " FILENAME ":1: a file begins by saying what it is for"
		bad = 1
	}
	END { exit bad }' && [ -z "$parted" ]
