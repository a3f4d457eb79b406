# Turns serve_metric.tbl into rows of struct metric (src/serve/exposition.c): awk -f serve_metric.awk serve_metric.tbl
BEGIN { FS = " *[|] *" }
/^#/ || !NF { next }
NF != 5 { print FILENAME ":" FNR ": 5 fields expected, " NF " found" > "/dev/stderr"; exit 1 }
{
	gsub(/"/, "\\\"", $4)
	gsub(/ +$/, "", $5)
	if (sub(/^server[.]/, "", $3))
		source = ".server = server_" substr($3, 1, length($3) - 2)
	else if (sub(/[(][)]$/, "", $3))
		source = ".put = " $3
	else
		source = ".put = put_value, .at = offsetof(struct version, " ($3 == "load_ns" ? "" : "stats.") $3 "), .divide = " \
			($3 !~ /[._]ns$/ ? "1" : $1 ~ /_us$/ ? "1000" : "1000000000")
	printf "\t{ \"%s\", \"%s\", \"%s\", \"%s\", %s },\n", $1, $2, $4 == "-" ? "" : $4, $5, source
}
