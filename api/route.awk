# Turns route.tbl into C:
#
#	awk -v out=h -f route.awk route.tbl    enum route
#	awk -v out=c -f route.awk route.tbl    rows of route_rows and rest_paths of src/wire/route.c

function fail(text) { print FILENAME ":" FNR ": " text > "/dev/stderr"; failed = 1; exit 1 }

function text(s) { return s == "-" ? "NULL" : "\"" s "\"" }

# A path of REST for each way of leaving out parts in [].
function expand(path,    open, close_, k) {
	if (!match(path, /\[[^\[\]]*\]/)) {
		if ((rows, path) in expanded)
			return
		expanded[rows, path] = 1
		k = split(substr(path, 2), segment, "/")
		if (k > segments_most)
			segments_most = k
		paths = paths "\t{ " rows + 0 ", " k ", {"
		for (open = 1; open <= k; open++)
			paths = paths (open > 1 ? ", " : " ") "\"" segment[open] "\""
		paths = paths " } },\n"
		return
	}
	open = RSTART
	close_ = RSTART + RLENGTH
	expand(substr(path, 1, open - 1) substr(path, close_))
	expand(substr(path, 1, open - 1) substr(path, open + 1, close_ - open - 2) substr(path, close_))
}
/^#/ || !NF { next }
{
	if (split($0, f, "|") != 8)
		fail("8 fields expected")
	for (i in f)
		gsub(/^ +| +$/, "", f[i])
	if (f[1] != "NONE" && !(f[1] in seen))
		names = names "\tROUTE_" f[1] ",\n"
	seen[f[1]] = 1
	method = f[4]
	if (method != "-")
		method = "/" (method ~ /\// ? "" : "inference.GRPCInferenceService/") method
	sub(/^stream /, "", f[5])
	sub(/^stream /, "", f[6])
	table = table "\t{ ROUTE_" f[1] ", " text(f[2]) ", " text(f[3]) ", " text(method) ",\n\t\t" text(f[5]) ", " \
		text(f[6]) ", " text(f[7]) ",\n\t\t" text(f[8]) " },\n"
	if (f[3] != "-")
		expand(f[3])
	rows++
}
END {
	if (failed)
		exit 1
	print "/* Made from api/route.tbl. */"
	if (out == "h") {
		printf "enum route {\n\tROUTE_NONE,\n%s};\n", names
		exit 0
	}
	printf "const struct route_row route_rows[] = {\n%s};\n\n", table
	printf "static const struct {\n\tunsigned char row, n;\n\tconst char *segment[%d];\n} rest_paths[] = {\n%s};\n",
		segments_most, paths
}
