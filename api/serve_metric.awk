# Turns serve_metric.tbl into rows of struct metric (src/serve/exposition.c): awk -f serve_metric.awk serve_metric.tbl
BEGIN { FS = " *[|] *" }
/^#/ || !NF { next }
NF != 5 { print FILENAME ":" FNR ": 5 fields expected, " NF " found" > "/dev/stderr"; exit 1 }
{
	gsub(/"/, "\\\"", $4)
	gsub(/ +$/, "", $5)
	at = $3 == "load_ns" ? $3 : "stats." $3
	divide = $3 ~ /[._]ns$/ ? ($1 ~ /_us$/ ? "1000" : "1000000000") : "1"
	printf "\t{ \"%s\", \"%s\", \"%s\", \"%s\", offsetof(struct version, %s), %s },\n", $1, $2, $4 == "-" ? "" : $4, $5, at, divide
}
