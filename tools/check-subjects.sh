# Subjects of commits: `module: verb ...` in at most 72 characters, one topic: check-subjects.sh ROOT.  It reads those
# that came after the one that brought this file, and says nothing where there is no history or only its end.
cd "$1" || exit 1
start=$(git log --diff-filter=A --format=%H -- tools/check-subjects.sh 2>/dev/null | tail -n 1)
[ -n "$start" ] || exit 0
git log --no-merges --format='%h %s' "$start..HEAD" | awk '
function say(what) {
	printf "  %s: %s\n", $0, what
	bad = 1
}
{
	subject = substr($0, index($0, " ") + 1)
	verb = subject
	sub(/^[^:]*: /, "", verb)
	sub(/[^A-Za-z-].*/, "", verb)
}
length(subject) > 72 { say(length(subject) " characters, more than 72") }
subject !~ /^[A-Za-z][A-Za-z0-9_.\/-]*(, [A-Za-z][A-Za-z0-9_.\/-]*)*: [a-z]/ { say("write it as module: verb ..."); next }
verb ~ /^(a|an|the|no|new|more|some|all|its|it|this|for|to|in|of|when|how)$/ || verb ~ /[^s]s$/ ||
	(verb ~ /(ed|ing)$/ && verb !~ /(eed|embed|bring|ping|string)$/) {
	say("begin with a verb that orders: \"" verb "\" is none")
}
subject ~ /;|\. |[.,]$/ { say("one topic, and no full stop") }
END { exit bad }'
