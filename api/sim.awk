# The simulated driver's view of the API tables.
#
#	awk -v out=WHAT -f sim.awk types.tbl enums.tbl cuda.tbl
#
# writes one C file, chosen by out:
#   enums    every enumeration constant                       (sim_enums.h)
#   api      an id and the prototype of a body per function   (sim_api.h)
#   exports  prototypes of the exported functions, for tests (sim_exports.h)
#   entries  the exported functions: account, check, call     (sim_entries.c)
#   stubs    a weak body per function that answers 801        (sim_stubs.c)
#   since    the base name and version of each symbol     (sim_since.h)
#   errors   the names of cudaError                        (rt_errors.c)
#   table    names, versions and addresses, by base name      (sim_table.c)
#
# An exported function X is an entry; what it does is sim_X(), its body.  A function whose
# name ends in _ptsz or _ptds shares the body of the function without that ending: the
# entry tells the thread that stream 0 now means the per-thread stream.

function fail(text)
{
	print FILENAME ":" FNR ": " text > "/dev/stderr"
	failed = 1
	exit 1
}

function ctype(t,    stars, c)
{
	stars = ""
	while (t ~ /\*$/) {
		stars = stars "*"
		t = substr(t, 1, length(t) - 1)
	}
	if (t in types)
		c = types[t]
	else if (t in enums)
		c = "int"
	else if (t == "char")
		c = "char"
	else if (stars != "")
		c = "void"
	else
		fail("unknown type " t)
	return c (stars != "" && c !~ /\*$/ ? " " : "") stars
}

function body_of(name)
{
	sub(/_pt[sd][sz]$/, "", name)
	return name
}

# Splits the argument text of a row into params (a declaration list) and actuals.
function read_args(text,    n, i, list, w, t, k)
{
	params = ""
	actuals = ""
	n = split(text, list, /, */)
	for (i = 1; i <= n; i++) {
		if (list[i] ~ /=/)
			continue
		k = split(list[i], w, " ")
		t = (k == 3) ? ctype(w[2] "*") : ctype(w[1])
		params = params (params == "" ? "" : ", ") t (t ~ /\*$/ ? "" : " ") "a" i
		actuals = actuals (actuals == "" ? "" : ", ") "a" i
	}
	if (params == "")
		params = "void"
}

function base_name(name)
{
	name = body_of(name)
	sub(/_v[0-9]+$/, "", name)
	return name
}

function write_api(i)
{
	print "#pragma once"
	print "#include <stddef.h>\n#include \"cuda_types.h\""
	print "enum sim_id {"
	for (i = 0; i < rows; i++)
		print "\tID_" name[i] ","
	print "\tSIM_FUNCTIONS\n};"
	for (i = 0; i < rows; i++)
		if (body_of(name[i]) == name[i])
			print "int sim_" name[i] "(" param[i] ");"
}

function write_entries(i)
{
	print "#include \"entry/entry.h\"\n"
	for (i = 0; i < rows; i++) {
		print "SIM_EXPORT int " name[i] "(" param[i] ");"
		print "int " name[i] "(" param[i] ")\n{"
		print "\tint r = entry_enter(ID_" name[i] ", " (body_of(name[i]) != name[i]) ");\n"
		print "\tif (r == ENTRY_GO)"
		print "\t\tr = entry_leave(ID_" name[i] ", sim_" body_of(name[i]) "(" actual[i] "));"
		print "\treturn r;\n}\n"
	}
}

function write_stubs(i)
{
	print "#include \"sim_api.h\"\n#include \"sim_enums.h\"\n"
	for (i = 0; i < rows; i++)
		if (body_of(name[i]) == name[i])
			print "__attribute__((weak)) int sim_" name[i] "(" param[i] \
				")\n{\n\treturn CUDA_ERROR_NOT_SUPPORTED;\n}\n"
}

function write_table(i)
{
	print "#include \"entry/entry.h\"\n"
	for (i = 0; i < rows; i++)
		print "SIM_EXPORT int " name[i] "(" param[i] ");"
	print "\nconst struct entry_row entry_table[SIM_FUNCTIONS] = {"
	for (i = 0; i < rows; i++)
		printf "\t{ \"%s\", \"%s\", %d, %d, (void *)%s },\n", name[i], base_name(name[i]),
			since[i], body_of(name[i]) != name[i], name[i]
	print "};\n\nconst char *entry_error_name(int code)\n{\n\tswitch (code) {"
	for (i = 0; i < errors; i++)
		print "\tcase " errvalue[i] ":\n\t\treturn \"" errname[i] "\";"
	print "\t}\n\treturn NULL;\n}"
	print "\nconst char *entry_error_text(int code)\n{\n\tswitch (code) {"
	for (i = 0; i < errors; i++)
		print "\tcase " errvalue[i] ":\n\t\treturn \"" error_text(errname[i]) "\";"
	print "\t}\n\treturn NULL;\n}"
}

function write_error_switch(called, text,    i)
{
	print "\nconst char *" called "(int code)\n{\n\tswitch (code) {"
	for (i = 0; i < rt_errors; i++)
		print "\tcase " rt_value[i] ":\n\t\treturn \"" \
			(text ? runtime_text(rt_name[i]) : rt_name[i]) "\";"
	print "\t}\n\treturn NULL;\n}"
}

function write_errors()
{
	print "#include <stddef.h>\n#include \"rt_errors.h\""
	write_error_switch("rt_error_name", 0)
	write_error_switch("rt_error_text", 1)
}

# cudaErrorInvalidValue reads "invalid value".
function runtime_text(s,    i, c, text)
{
	if (s == "cudaSuccess")
		return "no error"
	if (s == "cudaErrorInvalidValue")
		return "invalid argument"
	if (s == "cudaErrorMemoryAllocation")
		return "out of memory"
	sub(/^cudaError/, "", s)
	text = ""
	for (i = 1; i <= length(s); i++) {
		c = substr(s, i, 1)
		if (c ~ /[A-Z]/ && i > 1 && substr(s, i - 1, 1) !~ /[A-Z]/)
			text = text " "
		text = text tolower(c)
	}
	return text
}

# CUDA_ERROR_NOT_FOUND reads "not found".
function error_text(s)
{
	if (s == "CUDA_SUCCESS")
		return "no error"
	if (s == "CUDA_ERROR_INVALID_VALUE")
		return "invalid argument"
	sub(/^CUDA_ERROR_/, "", s)
	gsub(/_/, " ", s)
	return tolower(s)
}

function write_exports(i)
{
	print "#pragma once"
	print "#include <stddef.h>\n#include \"cuda_types.h\""
	for (i = 0; i < rows; i++)
		print "int " name[i] "(" param[i] ");"
}

function write_since(i)
{
	for (i = 0; i < rows; i++) {
		print "#define BASE_" name[i] " \"" base_name(name[i]) "\""
		print "#define SINCE_" name[i] " " since[i]
	}
}

function write_enums(i)
{
	print "#pragma once\nenum {"
	for (i = 0; i < constants; i++)
		print "\t" constname[i] " = " constvalue[i] ","
	print "};"
}

/^#/ || NF == 0 {
	next
}

FILENAME ~ /types\.tbl$/ {
	c = $3
	for (i = 4; i <= NF; i++)
		c = c " " $i
	types[$1] = c
	next
}

FILENAME ~ /enums\.tbl$/ {
	enums[$1] = 1
	if ($1 == "cudaError") {
		rt_name[rt_errors + 0] = $3
		rt_value[rt_errors++] = $2
	}
	if ($1 == "CUresult") {
		errname[errors + 0] = $3
		errvalue[errors++] = $2
	}
	if (!($3 in seen)) {
		seen[$3] = 1
		constname[constants + 0] = $3
		constvalue[constants++] = $2
	}
	next
}

{
	text = ""
	for (i = 5; i <= NF; i++)
		text = text (text == "" ? "" : " ") $i
	read_args(text)
	name[rows + 0] = $2
	since[rows + 0] = $3
	param[rows + 0] = params
	actual[rows++] = actuals
}

END {
	if (failed)
		exit 1
	print "/* Generated by api/sim.awk from the tables in api/. */"
	if (out == "api")
		write_api()
	else if (out == "entries")
		write_entries()
	else if (out == "stubs")
		write_stubs()
	else if (out == "table")
		write_table()
	else if (out == "exports")
		write_exports()
	else if (out == "errors")
		write_errors()
	else if (out == "since")
		write_since()
	else if (out == "enums")
		write_enums()
	else
		fail("out is one of enums api exports entries errors since stubs table")
}
