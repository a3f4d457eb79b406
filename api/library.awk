# Turns library.tbl into C:
#
#	awk -v want=WHAT -f api/library.awk api/library.tbl
#
# WHAT     ids       enum library_id, LIBRARY_FNS(X), enum library_fn   (library_ids.h)
#          wrappers  one wrapper a function, and what library each is of (hook_library.c)
#          names     the exported symbols, one a line
#          rules     rows of operator.tbl, for what the calls cost

function fail(text) { print "library.awk: " text > "/dev/stderr"; failed = 1; exit 1 }

function add(library, name, letter, count, rule, reads) {
	n++
	of[n] = library; fn[n] = name; type[n] = letter; args[n] = count; rule_of[n] = rule
	read[n] = reads
}

/^#/ || NF == 0 { next }
{
	if (NF < 5) fail("'" $2 "': 5 fields expected")
	if (!($1 in seen)) { seen[$1] = 1; library[++libraries] = $1 }
	if ($5 !~ /^(open|gemm|symmetric|triangle|matmul|conv|range)$/) fail("'" $5 "' is no rule")
	reads = ""
	for (f = 6; f <= NF; f++) {
		if ($f !~ /^[a-z]+=[0-9]+$/ || substr($f, index($f, "=") + 1) + 0 >= $4)
			fail($2 ": '" $f "' is no argument of it")
		reads = reads " " $f
	}
	for (l = 1; l <= length($3); l++) {
		letter = substr($3, l, 1)
		name = $2
		if (letter != "-" && !sub(/\*/, letter, name)) fail(name ": letters, and no *")
		add($1, name, letter, $4, $5, reads)
		if ($5 == "open") opener[$1] = name
		else if ($1 == "cublas") add($1, name "_64", letter, $4, $5, reads)
	}
}

function ids(	i) {
	print "/* Made by api/library.awk. */\n#pragma once\n"
	print "#include \"fn_ids.h\"\n\nenum library_id {"
	for (i = 1; i <= libraries; i++) print "\tLIBRARY_OF_" library[i] ","
	print "\tLIBRARIES\n};\n\n#define LIBRARY_FNS(X) \\"
	for (i = 1; i <= n; i++) print "\tX(" fn[i] ")" (i < n ? " \\" : "")
	print "\n#define LIBRARY_ID(name) LIBRARY_##name,"
	print "enum library_fn { LIBRARY_NONE = FN_COUNT - 1, LIBRARY_FNS(LIBRARY_ID) HOOK_COUNT };"
}

# Integers and pointers travel alike: as 64 bits, whatever their upper half holds.
function each(count, text,	i, all, one) {
	for (i = 0; i < count; i++) {
		one = text
		gsub(/@/, i, one)
		all = all (i ? ", " : "") one
	}
	return all
}

# The row's value for a word: an expression, or "" .
function value(i, word, cast,	part, m, k) {
	m = split(read[i], part, /[ =]/)
	for (k = 2; k < m; k += 2) if (part[k] == word) return cast "a" part[k + 1]
	return ""
}

function number(i, word,	v) {
	if (word == "k" && (v = value(i, "side", "(int32_t)")) != "") # CUBLAS_SIDE_LEFT is 0
		return "(" v " ? " number(i, "n") " : " number(i, "m") ")"
	v = value(i, word, fn[i] ~ /_64$/ ? "(int64_t)" : "(int32_t)")
	return v == "" ? 1 : v
}

function data_type(i, word,	v) {
	v = value(i, word, "(int32_t)")
	if (v != "") return v
	return type[i] == "-" || word == "compute" ? "UNSAID" : "TYPE_" type[i]
}

function is_product(i) { return rule_of[i] ~ /^(gemm|symmetric|triangle)$/ }

function describe(i) {
	if (is_product(i)) {
		print "\tconst struct product p = { .m = " number(i, "m") ", .n = " number(i, "n") ", .k = " number(i, "k") ", .batch = " number(i, "batch") ","
		print "\t\t.type = " data_type(i, "a") ", .type_b = " data_type(i, "b") ", .type_c = " data_type(i, "c") ", .compute = " data_type(i, "compute") " };"
		return "product_args(&p)"
	}
	if (rule_of[i] == "matmul")
		return "matmul_args(" value(i, "desc", "(void *)") ", " value(i, "a", "(void *)") ", " value(i, "b", "(void *)") ", " value(i, "d", "(void *)") ")"
	if (rule_of[i] == "conv")
		return "conv_args(" value(i, "input", "(void *)") ", " value(i, "filter", "(void *)") ", " value(i, "output", "(void *)") ")"
	return "0"
}

function wrapper(i,	with, types, pass, told) {
	with = each(args[i], "uint64_t a@"); types = each(args[i], "uint64_t"); pass = each(args[i], "a@")
	print (rule_of[i] == "open" ? "WRAPPER int " : "static __attribute__((noinline, used)) int recorded_") fn[i] "(" with ")\n{"
	print "\tint (*real)(" types ") = library_real(LIBRARY_" fn[i] ", __builtin_return_address(0));"
	if (rule_of[i] == "open")
		print "\treturn real(" pass ");\n}\n"
	else {
		print "\tif (!ranges_wanted())\n\t\treturn real(" pass ");"
		told = describe(i)
		print "\tconst uint32_t scope = library_enter(LIBRARY_" fn[i] ", " told ");"
		print "\tconst int result = real(" pass ");\n\trange_pop(scope);\n\treturn result;\n}\n"
	}
	if (rule_of[i] != "open")
		print "LIBRARY_ENTRY(" fn[i] ")\n"
}

function wrappers(	i) {
	print "/* Made by api/library.awk. */\n#include \"hook/core/call.h\"\n#include \"hook/range/library.h\"\n#include \"hook/range/range.h\"\n#include \"hook/range/shape.h\"\n"
	for (i = 1; i <= n; i++) wrapper(i)
	print "const struct library libraries[LIBRARIES] = {"
	for (i = 1; i <= libraries; i++) {
		if (!(library[i] in opener)) fail(library[i] ": no row opens it")
		print "\t[LIBRARY_OF_" library[i] "] = { \"" library[i] "\", \"" opener[library[i]] "\", \"lib" library[i] "_\" },"
	}
	print "};\n\nconst unsigned char library_of[HOOK_COUNT - FN_COUNT] = {"
	for (i = 1; i <= n; i++) print "\t[LIBRARY_" fn[i] " - FN_COUNT] = LIBRARY_OF_" of[i] ","
	print "};"
}

function rules(	i) {
	for (i = 1; i <= n; i++)
		if (rule_of[i] ~ /^(gemm|matmul)$/) print fn[i] " gemm 0 0 2"
		else if (is_product(i)) print fn[i] " packed 0 0 " (rule_of[i] == "triangle" ? 1 : 2)
		else if (rule_of[i] == "conv") print fn[i] " filter 0 0 2"
}

END {
	if (failed) exit 1
	if (want == "ids") ids()
	else if (want == "wrappers") wrappers()
	else if (want == "names") { for (i = 1; i <= n; i++) print fn[i] }
	else if (want == "rules") rules()
	else fail("want=" want " is nothing that I know")
}
