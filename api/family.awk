# Turns family.tbl into the arrays of src/predict/kernel.c: awk -f family.awk family.tbl

BEGIN { FS = " *[|] *" }

function fail(text) { print FILENAME ":" FNR ": " text > "/dev/stderr"; failed = 1; exit 1 }

function bool(value) { return value ? "true" : "false" }

/^#/ || !NF { next }

# Helpers are looked for in plain names, where a run of digits is one #.
/^=helper/ { n = split($2, word, " "); for (i = 1; i <= n; i++) { gsub(/[0-9]+/, "#", word[i]); helper[++helpers] = word[i] }; next }
/^=fewer/ { n = split($2, word, " "); for (i = 1; i <= n; i++) fewer[++fewers] = word[i]; next }
/^=sum/ { n = split($2, word, " "); for (i = 1; i <= n; i++) sum[++sums] = word[i]; next }
/^=fused/ { n = split($2, word, " "); for (i = 1; i <= n; i++) fused[++fuseds] = word[i]; next }
/^=weight/ { n = split($2, word, " "); for (i = 1; i <= n; i++) weight[++weights] = word[i]; next }
/^=input/ { n = split($2, word, " "); for (i = 1; i <= n; i++) input[++inputs] = word[i]; next }
/^=product/ { n = split($2, word, " "); for (i = 1; i <= n; i++) product = product "\n\t[FAMILY_" toupper(word[i]) "] = true,"; next }
/^=/ {
	unit = substr($1, 2)
	if (unit !~ /^(fp64|fp32|tf32|fp16|fp8|other)$/)
		fail("'" unit "' is no unit")
	n = split($2, word, " ")
	for (i = 1; i <= n; i++)
		arithmetic[++arithmetics] = sprintf("\t{ %s, \"%s\" },", unit == "other" ? "GPU_UNITS" : "GPU_" toupper(unit), word[i])
	next
}

{
	if (NF != 2 || $1 !~ /^[a-z]+$/)
		fail("a family and its words expected")
	if (!($1 in seen))
		order[++families] = $1
	seen[$1] = 1
	n = split($2, word, " ")
	for (i = 1; i <= n; i++) {
		weak = sub(/^[?]/, "", word[i])
		inside = sub(/^[+]/, "", word[i])
		open_begin = sub(/^[*]/, "", word[i])
		open_end = sub(/[*]$/, "", word[i])
		if (word[i] !~ /^[a-z0-9_]+$/)
			fail("'" word[i] "' is not a word of lower case letters, digits and _")
		row[++rows] = sprintf("\t{ FAMILY_%s, %s, %s, %s, %s, \"%s\" },", toupper($1),
			bool(weak), bool(inside), bool(open_begin), bool(open_end), word[i])
	}
}
END {
	if (failed)
		exit 1
	print "/* Made from api/family.tbl. */"
	print "static const struct {\n\tenum predict_family family;\n\tbool weak, inside, open_begin, open_end;\n\tconst char *word;"
	print "} family_words[] = {"
	for (i = 1; i <= rows; i++)
		print row[i]
	print "};\n"
	print "static const char *const family_names[FAMILIES] = {\n\t[FAMILY_UNKNOWN] = \"unknown\","
	for (i = 1; i <= families; i++)
		printf "\t[FAMILY_%s] = \"%s\",\n", toupper(order[i]), order[i]
	print "};\n"
	print "static const bool family_multiplies[FAMILIES] = {" product "\n};\n"
	print "static const char *const helper_words[] = {"
	for (i = 1; i <= helpers; i++)
		printf "\t\"%s\",\n", helper[i]
	print "};\n\nstatic const char *const fewer_words[] = {"
	for (i = 1; i <= fewers; i++)
		printf "\t\"%s\",\n", fewer[i]
	print "};\n\nstatic const char *const sum_words[] = {"
	for (i = 1; i <= sums; i++)
		printf "\t\"%s\",\n", sum[i]
	print "};\n\nstatic const char *const fused_words[] = {"
	for (i = 1; i <= fuseds; i++)
		printf "\t\"%s\",\n", fused[i]
	print "};\n\nstatic const char *const weight_words[] = {"
	for (i = 1; i <= weights; i++)
		printf "\t\"%s\",\n", weight[i]
	print "};\n\nstatic const char *const input_words[] = {"
	for (i = 1; i <= inputs; i++)
		printf "\t\"%s\",\n", input[i]
	print "};\n\nstatic const struct {\n\tenum gpu_unit unit; /* GPU_UNITS: another */\n\tconst char *word;"
	print "} unit_words[] = {"
	for (i = 1; i <= arithmetics; i++)
		print arithmetic[i]
	print "};"
}
