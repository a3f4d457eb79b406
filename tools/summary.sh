# The outcome of a run of tests: summary.sh FILE..., the results that ctest --output-junit wrote,
# each in the folder of its build.  Prints `N passed, N failed, N skipped`, and then which were
# skipped and why: the last line that such a test printed.  Leaves with 1 if one failed, or if there
# are no results.
there=/dev/null missing=
for file in "$@"; do
	if [ -e "$file" ]; then
		there="$there $file"
	else
		echo "no results in $file: its tests did not run"
		missing=yes
	fi
done
awk '
function plain(text) {
	gsub(/&quot;/, "\"", text)
	gsub(/&apos;/, "\047", text)
	gsub(/&lt;/, "<", text)
	gsub(/&gt;/, ">", text)
	gsub(/&amp;/, "\\&", text)
	return text
}
/^\t<testcase / {
	build = FILENAME
	sub(/\/?[^\/]*$/, "", build)
	sub(/.*\//, "", build)
	split($0, part, "\"")
	name = (build == "build" ? "" : build "/") part[2]
	status = /status="run"/ ? "passed" : "failed"
	said = ""
}
/<skipped message="SKIP_RETURN_CODE/ { status = "skipped" }
{
	sub(/^\t*<system-out>/, "")
	sub(/<\/system-out>$/, "")
	if (/[^ \t]/ && !/^\t*</)
		said = $0
}
/^\t<\/testcase>/ {
	n[status]++
	why = status != "skipped" ? "" : said == "" ? " (it does not say why)" : " (" plain(said) ")"
	names[status] = names[status] (names[status] ? ", " : "") name why
}
END {
	if (n["failed"])
		print "failed: " names["failed"]
	printf "%d passed, %d failed, %d skipped\n", n["passed"], n["failed"], n["skipped"]
	print n["skipped"] ? "skipped: " names["skipped"] : "nothing was skipped"
	exit n["failed"] > 0
}' $there && [ -z "$missing" ]
