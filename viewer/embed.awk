# Puts style, script and the hashes of both into page.html and prints the page as C: the text
# before the data, between them and the fine timeline, and behind.  Lines with a marker are split at it; what is put in
# stands there byte by byte, since the page's policy allows it by its hash.

function base64(hex,    digits, letters, text, i, v) {
	digits = "0123456789abcdef"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for (i = 1; i <= length(hex); i += 3) {
		v = (index(digits, substr(hex, i, 1)) - 1) * 256
		if (i < length(hex)) {
			v += (index(digits, substr(hex, i + 1, 1)) - 1) * 16
			v += index(digits, substr(hex, i + 2, 1)) - 1
		}
		text = text substr(letters, int(v / 64) + 1, 1)
		if (i < length(hex))
			text = text substr(letters, v % 64 + 1, 1)
	}
	return text "="
}

function put(text, end) {
	gsub(/[\\"]/, "\\\\&", text)
	print "\t\"" text end "\""
}

function put_file(file,    line) {
	while ((getline line < file) > 0)
		put(line, "\\n")
	close(file)
}

function fill(line, marker, text) {
	at = index(line, marker)
	return substr(line, 1, at - 1) text substr(line, at + length(marker))
}

BEGIN {
	getline line < sums
	script_hash = base64(substr(line, 1, 64))
	getline line < sums
	style_hash = base64(substr(line, 1, 64))
	print "/* Made of viewer/ by embed.awk. */"
	print "extern const char viewer_before[], viewer_between[], viewer_after[];"
	print "const char viewer_before[] ="
}

/@SCRIPT-HASH@/ { $0 = fill($0, "@SCRIPT-HASH@", script_hash) }
/@STYLE-HASH@/ { $0 = fill($0, "@STYLE-HASH@", style_hash) }

match($0, /@(STYLE|SCRIPT|DATA|FINE)@/) {
	marker = substr($0, RSTART, RLENGTH)
	rest = substr($0, RSTART + RLENGTH)
	put(substr($0, 1, RSTART - 1), "")
	if (marker == "@DATA@")
		print "\t;\nconst char viewer_between[] ="
	else if (marker == "@FINE@")
		print "\t;\nconst char viewer_after[] ="
	else
		put_file(marker == "@STYLE@" ? style : script)
	put(rest, "\\n")
	next
}

{ put($0, "\\n") }

END { print "\t;" }
