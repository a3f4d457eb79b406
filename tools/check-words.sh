# The text speaks of the project: no marks of unfinished work, no places where it was written, no
# numbers that only a tracker understands; and in the words of its field: tools/words.tbl has those that are not,
# and what to say instead.  check-words.sh ROOT.
cd "$1" || exit 1
marks='(T)ODO|(F)IXME|[^X](X)XX[^X]|(H)ACK|[^a-z.](/)(work|farm|home|root)/|(a)s an ai |(l)anguage model'
marks="$marks|[(f]ix(es)? #[0-9]|[^a-zA-Z&](i)ssue #?[0-9]+"
files=$(git ls-files 2>/dev/null)
[ -n "$files" ] || files=$(find . -type f | sed 's,^\./,,')
bad=0

found=$(printf '%s\n' "$files" | grep -v '^tools/check-words\.sh$' | tr '\n' '\0' | xargs -0 grep -InE "$marks" 2>/dev/null)
[ -z "$found" ] || printf '%s\n' "$found" | cut -c 1-140 | sed 's/^/  /'
[ -z "$found" ] || bad=1

# The texts that people read, and names and comments in code.  Tests may say what they like.
read=$(printf '%s\n' "$files" | grep -E '^([A-Z]+\.md|(docs|man|src|viewer)/.*|api/(command|option|hint)\.tbl)$' |
	grep -E '\.(md|in|tbl|c|h|S|js|html|map)$')
while IFS= read -r line; do
	case $line in '#'* | '') continue ;; esac
	pattern=${line%% | *} rest=${line#* | }
	found=$(printf '%s\n' "$read" | grep -vE "^(${rest##* | })" | tr '\n' '\0' |
		xargs -0 grep -HInowiE "$pattern" 2>/dev/null)
	[ -n "$found" ] || continue
	printf '%s\n' "$found" | sed "s#\$# (say: ${rest%% | *})#; s/^/  /"
	bad=1
done <tools/words.tbl
exit $bad
