# Turns hint.tbl into the array of src/hint/hint.h, the functions of its rules, or the list of
# weir-hints(1):
#
#	awk -v out=c -f hint.awk hint.tbl
#	awk -v out=h -f hint.awk hint.tbl
#	awk -v out=man -f hint.awk hint.tbl PAGE	fills in the line @RULES@

function fail(text) { print FILENAME ":" FNR ": " text > "/dev/stderr"; failed = 1; exit 1 }

function quoted(s) { gsub(/["\\]/, "\\\\&", s); return "\"" s "\"" }

# Lines of at most 80 columns, none of which mandoc takes for a request.
function filled(s,    n, i, word, line)
{
	gsub(/\\/, "\\e", s)
	n = split(s, word, " ")
	for (i = 1; i <= n; i++) {
		if (length(line word[i]) > 78) {
			print line
			line = ""
		}
		line = line (line == "" ? "" : " ") word[i]
		if (word[i] ~ /[.]$/ && i < n) {
			print line
			line = ""
		}
	}
	print line
}

function sentence(s) { return toupper(substr(s, 1, 1)) substr(s, 2) (s ~ /\.$/ ? "" : ".") }

FILENAME ~ /\.in$/ {
	if ($0 != "@RULES@") {
		print
		next
	}
	print ".Bl -tag -width Ds"
	for (i = 1; i <= n; i++) {
		print ".It Cm " id[i]
		filled(sentence(title[i]))
		filled(when[i])
		print ".Pp"
		filled("To do: " advice[i] ".")
		if (compiled[i] != "")
			filled("In a program that torch.compile has made: " compiled[i] ".")
	}
	print ".El"
	next
}
/^#/ || !NF { next }
{
	fields = split($0, f, / +\| +/)
	if (fields != 5 && fields != 6)
		fail("5 or 6 fields expected")
	if (f[1] !~ /^[a-z0-9-]+$/ || f[2] !~ /^[a-z0-9_]+$/ || f[1] in seen)
		fail("'" f[1] "' is no id, or stands twice")
	seen[f[1]] = 1
	id[++n] = f[1]
	evaluate[n] = f[2]
	title[n] = f[3]
	when[n] = f[4]
	advice[n] = f[5]
	compiled[n] = fields > 5 ? f[6] : ""
}
END {
	if (failed)
		exit 1
	if (out == "h") {
		print "/* Made from api/hint.tbl: the functions of the rules. */"
		print "#pragma once\n"
		print "#include \"hint/hint_facts.h\"\n"
		for (i = 1; i <= n; i++)
			print "HINT_RULE(" evaluate[i] ");"
	}
	if (out != "c")
		exit 0
	print "/* Made from api/hint.tbl. */"
	print "#include \"hint_rules.h\"\n"
	print "const struct hint_rule hint_rules[] = {"
	for (i = 1; i <= n; i++)
		printf "\t{ %s, %s,\n\t\t%s,\n\t\t%s,\n\t\t%s,\n\t\tevaluate_%s },\n", quoted(id[i]),
			quoted(title[i]), quoted(when[i]), quoted(advice[i]),
			compiled[i] == "" ? "NULL" : quoted(compiled[i]), evaluate[i]
	print "};"
	print "const size_t hint_rule_count = sizeof(hint_rules) / sizeof(hint_rules[0]);"
}
