# The sentences of comments, one a line: FILE:LINE <tab> SENTENCE.  In C, JavaScript and CSS comments stand between
# slash and asterisk, elsewhere behind # and, in Python, in the text that a module or function begins with.
function say(   n, i, parts) {
	gsub(/[ \t]+/, " ", text)
	n = 0
	while (match(text, /[.!?:]["')]* ["'(]*[A-Z]/)) {
		parts[++n] = substr(text, 1, RSTART)
		text = substr(text, RSTART + RLENGTH - 1)
	}
	parts[++n] = text
	for (i = 1; i <= n; i++) {
		sub(/^[ "'(]+/, "", parts[i])
		if (parts[i] ~ /[A-Za-z]/)
			printf "%s:%d\t%s\n", file, began, parts[i]
	}
	text = ""
}
function add(s) {
	sub(/^[ \t]*[*#]*[ \t]*/, "", s)
	if (s == "") {
		say()
		return
	}
	if (text == "")
		began = FNR
	text = text " " s
}
FNR == 1 {
	say()
	file = FILENAME
	inside = 0
	starred = file ~ /\.(c|h|cu|cuh|cc|cpp|js|css)$/
}
starred {
	line = $0
	gsub(/'"'/, "", line)
	if (!inside)
		gsub(/"([^"\\]|\\.)*"/, "", line)
	while (inside || (at = index(line, "/*"))) {
		if (!inside)
			line = substr(line, at + 2)
		at = index(line, "*/")
		inside = !at
		add(at ? substr(line, 1, at - 1) : line)
		if (inside)
			break
		say()
		line = substr(line, at + 2)
	}
	next
}
/"""/ && file ~ /\.py$/ {
	n = split($0, part, /"""/)
	if (inside || $0 ~ /^[ \t]*"""/)
		add(part[inside ? 1 : 2])
	if (n == 2)
		inside = !inside && $0 ~ /^[ \t]*"""/
	if (!inside)
		say()
	next
}
inside || /^[ \t]*#/ { add($0); next }
text != "" { say() }
match($0, /[ \t]# /) { add(substr($0, RSTART + 1)); say() }
END { say() }
