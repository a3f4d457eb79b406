# The sentences of README, docs and man pages, one a line: WORDS <tab> FILE:LINE <tab> SENTENCE.  Code, tables,
# headings and synopses are no prose.  A cell of inline code counts as one word.
function flush(   text, n, i, parts) {
	text = paragraph
	paragraph = ""
	gsub(/`[^`]*`/, "CODE", text)
	gsub(/\]\([^)]*\)/, "", text)
	gsub(/[*_\[]+/, "", text)
	gsub(/e\.g\./, "eg", text)
	gsub(/i\.e\./, "ie", text)
	gsub(/ vs\./, " vs", text)
	n = split_sentences(text, parts)
	for (i = 1; i <= n; i++)
		if (parts[i] ~ /[A-Za-z]/)
			printf "%d\t%s:%d\t%s\n", words(parts[i]), FILENAME, began, parts[i]
}
function words(s,   n, i, w, count) {
	n = split(s, w, /[ \t]+/)
	for (i = 1; i <= n; i++)
		count += w[i] ~ /[A-Za-z0-9]/
	return count
}
function split_sentences(s, parts,   n) {
	while (match(s, /[.!?]["')]*[ \t]+["'(]*[A-Z0-9`]/)) {
		parts[++n] = substr(s, 1, RSTART)
		s = substr(s, RSTART + RLENGTH - 1)
	}
	if (s != "")
		parts[++n] = s
	return n
}
function add(s) {
	if (paragraph == "")
		began = FNR
	paragraph = paragraph == "" ? s : paragraph " " s
}
FNR == 1 {
	flush()
	code = 0
	man = FILENAME ~ /\.[1-9]\.in$/
}
man && /^\.(Bd|Sh SYNOPSIS|Sh NAME)/ { flush(); code = 1; next }
man && /^\.Ed/ || man && /^\.Sh (DESC|EXIT|FILES|ENV|SEE|OPT|EXAM|[A-Z])/ && !/SYNOPSIS|NAME/ { flush(); code = 0; next }
man && code { next }
man && /^\.(Sh|Ss|Pp|It|Bl|El|Dd|Dt|Os|Dl|D1|Nd|\\")/ { flush(); next }
man && /^@/ { next }
man && /^\./ {
	sub(/^\.[A-Z][a-z] /, "")
	gsub(/ (Ar|Fl|Cm|Pa|Nm|Ev|Ns|Sy|Em|Xr|Ql|Li|No) /, " ")
	gsub(/ ([.,:;)])/, "&")
	line = $0
	while (match(line, / [.,:;)]/))
		line = substr(line, 1, RSTART - 1) substr(line, RSTART + 1)
	add(line)
	next
}
/^[ \t]*```/ { flush(); code = !code; next }
code { next }
/^(\||#|    |\t|<)/ || /^[ \t]*$/ || /^---/ { flush(); next }
/^[ \t]*([*+-]|[0-9]+\.) / { flush(); sub(/^[ \t]*([*+-]|[0-9]+\.) /, "") }
{ sub(/^[ \t>]+/, ""); add($0) }
END { flush() }
