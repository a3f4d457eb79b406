# Turns operator.tbl into the array of src/model/cost.c, sorted by name:
# awk -f operator.awk operator.tbl, and what library.awk has made of library.tbl

BEGIN {
	n = split("product linear conv attention map reduce rows copy pick lookup join write gemm packed filter backward", words, " ")
	for (i = 1; i <= n; i++) known[words[i]] = 1
	n = split("stride padding dilation output_padding groups transposed mask length causal causal_end window offsets longest", words, " ")
	for (i = 1; i <= n; i++) places[words[i]] = 1
}

# WORD=NUMBER, or the word alone, behind the fields that all rules have.
function place(text,    part) {
	split(text, part, "=")
	if (!(part[1] in places)) fail("'" part[1] "' is no argument")
	if (text == "transposed") return ".transposed = ALWAYS"
	if (part[2] !~ /^[0-9]+$/ || part[2] < 1 || part[2] > 15) fail("'" text "': a place from 1 to 15 expected")
	return "." part[1] " = " part[2]
}

function fail(text) { print FILENAME ":" FNR ": " text > "/dev/stderr"; failed = 1; exit 1 }

/^#/ || !NF { next }
{
	if (NF < 5) fail("5 fields expected, " NF " found")
	if (NF > 5 && $2 != "conv" && $2 != "backward" && $2 != "attention") fail("arguments are for convolutions and attention")
	if (!($2 in known)) fail("'" $2 "' is no rule")
	if ($1 in seen) fail($1 " stands there twice")
	if ($3 !~ /^[0-9]$/ || $4 !~ /^[0-9]$/ || $5 !~ /^[0-9]+$/) fail("three numbers expected")
	seen[$1] = 1
	row[++rows] = $1
	at = NF > 5 ? "" : "0"
	for (i = 6; i <= NF; i++) at = at (i > 6 ? ", " : "") place($i)
	text[$1] = sprintf("{ \"%s\", RULE_%s, %d, %d, %d, { %s } },", $1, toupper($2), $3, $4, $5, at)
}

END {
	if (failed) exit 1
	for (i = 2; i <= rows; i++)
		for (k = i; k > 1 && row[k - 1] > row[k]; k--) {
			swap = row[k]; row[k] = row[k - 1]; row[k - 1] = swap
		}
	print "/* Made from api/operator.tbl. */"
	for (i = 1; i <= rows; i++) print text[row[i]]
}
