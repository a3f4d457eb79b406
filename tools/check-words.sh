# The text speaks of the project: no marks of unfinished work, no places where it was written, no
# numbers that only a tracker understands: check-words.sh ROOT.
cd "$1" || exit 1
words='(T)ODO|(F)IXME|[^X](X)XX[^X]|(H)ACK|[^a-z.](/)(work|farm|home|root)/|(a)s an ai |(l)anguage model'
words="$words|[(f]ix(es)? #[0-9]|[^a-zA-Z&](i)ssue #?[0-9]+"
files=$(git ls-files 2>/dev/null)
[ -n "$files" ] || files=$(find . -type f)
found=$(printf '%s\n' "$files" | grep -vE '^(\./)?tools/check-words\.sh$' |
	tr '\n' '\0' | xargs -0 grep -InE "$words" 2>/dev/null)
[ -z "$found" ] || printf '%s\n' "$found" | cut -c 1-140 | sed 's/^/  /'
[ -z "$found" ]
