# The options and keys in code spans of pages are there: named.awk api/command.tbl api/option.tbl
# docs/reference/json-*.md pages=1 PAGE... It reads `weir COMMAND --option`, `--option` alone (of
# any command), `list[].key`, and a span after the word key.
function complain(what) {
	printf "  %s:%d: there is no %s\n", FILENAME, FNR, what
	bad = 1
}
function option_in(word) {
	sub(/^--/, "", word)
	sub(/[^a-z0-9-].*/, "", word)
	return word
}
function command_line(span,    n, word, i) {
	n = split(span, word, " ")
	if (!(word[2] in commands))
		return complain("command weir " word[2])
	for (i = 3; i <= n && word[i] != "--"; i++)
		if (word[i] ~ /^--[a-z]/ && !((word[2], option_in(word[i])) in options))
			complain("option --" option_in(word[i]) " of weir " word[2])
}
function keys_in(text, to,    n, key, i) {
	n = split(text, key, /[^a-z0-9_]+/)
	for (i = 1; i <= n; i++)
		if (to)
			known[key[i]] = 1
		else if (!(key[i] in known))
			complain("key " key[i] " in docs/reference/json-*.md")
}
/^(#|$)/ && FILENAME ~ /\.tbl$/ { next }
FILENAME ~ /command\.tbl$/ {
	commands[$1] = 1
	next
}
FILENAME ~ /option\.tbl$/ {
	split($0, field, / *[|] */)
	n = split(field[1], of, "+")
	for (i = 1; i <= n; i++)
		options[of[i], field[2]] = 1
	any[field[2]] = 1
	next
}
!pages && /^(\| `|#)/ { keys_in(/^#/ ? $0 : substr($0, 1, index(substr($0, 2), "|")), 1) }
!pages { next }
{
	n = split($0, part, "`")
	for (i = 2; i <= n && n % 2; i += 2) { # a span that goes on in the next line is passed over
		if (part[i] ~ /^weir [a-z]/)
			command_line(part[i])
		else if (FILENAME ~ /^(\.|docs)\// && part[i] ~ /^--[a-z]/ && !(option_in(part[i]) in any))
			complain("option --" option_in(part[i]))
		else if (part[i] ~ /^[a-z_]+\[\](\.[a-z_0-9]+)+$/ ||
			(part[i] ~ /^[a-z_0-9.]+$/ && part[i - 1] ~ /(^|[^a-z])keys? $/))
			keys_in(part[i], 0)
	}
}
END { exit bad }
