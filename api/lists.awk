# Turns the tables of functions, types and enumerations into lists.
#
#	awk -v want=WHAT -f api/tables.awk -f api/gen.awk -f api/lists.awk api/types.tbl api/enums.tbl api/cuda.tbl api/cudart.tbl
#
# WHAT     ids       enum fn, enum fn_class                         (fn_ids.h)
#          schema    the schema text of docs/reference/trace-format.md        (schema_text.c)
#          enums     names of enumeration values                    (enum_names.c)
#          classes   names of the classes                           (class_names.c)
#          table     names and wrappers by id                       (hook_table.c)
#          exports   the exported symbols, one a line               (hook_exports.txt)
#          manual    the calls as a manual page                     (weir-calls.7)

function ids(	i, seen) {
	print "/* Made by api/lists.awk. */\n#pragma once\n\nenum fn {\n\tFN_NONE = 0,"
	for (i = 1; i <= n; i++) print "\tFN_" name[i] " = " i ","
	print "\tFN_COUNT = " n + 1 ",\n\tFN_DRIVER_END = " drivers + 1 ",\n};\n\nenum fn_class {"
	for (i = 1; i <= n; i++)
		if (!(class[i] in seen)) { seen[class[i]] = 1; print "\tCLASS_" class[i] "," }
	print "\tCLASS_COUNT\n};\n\nextern const char *const class_names[CLASS_COUNT];"
}

function schema_line(i) {
	return i " " api[i] " " class[i] " " record[i] " " name[i] "(" args[i] ")"
}

function schema(	i, t, text, used) {
	print "/* Made by api/lists.awk. */\n#include \"event/schema.h\"\n\nconst char schema_text[] ="
	for (i = 1; i <= n; i++) {
		text = schema_line(i)
		print "\t\"" text "\\n\""
		split_args(i)
		for (t in type) used[type[t]] = 1
	}
	for (t = 1; t <= types; t++) print "\t\"type " type_order[t] " " kind[type_order[t]] " " bytes_of(type_order[t]) "\\n\""
	for (t = 1; t <= enums; t++) if (enum_order[t] in used) print "\t\"type " enum_order[t] " enum 4\\n\""
	print "\t;\nconst unsigned schema_text_bytes = sizeof schema_text - 1;"
}

function enum_names(	i, part, order, line) {
	print "/* Made by api/lists.awk. */\n#include \"event/schema.h\"\n\nconst struct enum_name enum_names[] = {"
	order = "LC_ALL=C sort -t'\t' -k1,1 -k2,2n"
	for (i = 1; i <= values; i++) print value[i] | (order " > '" sorted "'")
	close(order " > '" sorted "'")
	while ((getline line < sorted) > 0) {
		split(line, part, "\t")
		print "\t{ \"" part[1] "\", " part[2] ", \"" part[3] "\" },"
	}
	print "};\nconst unsigned enum_names_count = sizeof enum_names / sizeof *enum_names;"
}

function table(	i, seen, classes, j) {
	print "/* Made by api/lists.awk. */\n#include \"event/format.h\"\n#include \"hook/core/hook_table.h\"\n"
	for (i = 1; i <= n; i++) print "int " name[i] "(void);"
	print "#define DECLARE(name) int name(void);\nLIBRARY_FNS(DECLARE)"
	print "\nconst struct hooked hooked[HOOK_COUNT] = {"
	for (i = 1; i <= n; i++) print "\t[FN_" name[i] "] = { \"" name[i] "\", (void *)" name[i] " },"
	print "#define HOOKED(name) [LIBRARY_##name] = { #name, (void *)name },\n\tLIBRARY_FNS(HOOKED)"
	print "};\n\nconst unsigned char fn_classes[FN_COUNT] = {"
	for (i = 1; i <= n; i++) print "\t[FN_" name[i] "] = CLASS_" class[i] ","
	print "};\n\nconst unsigned int fn_stack_bits[FN_COUNT] = {"
	for (i = 1; i <= n; i++) if (stack_group(i) != "") print "\t[FN_" name[i] "] = " stack_bits(i) ","
	print "};\n"
}

function classes_table(	i, seen) {
	print "const char *const class_names[CLASS_COUNT] = {"
	for (i = 1; i <= n; i++)
		if (!(class[i] in seen)) { seen[class[i]] = 1; print "\t[CLASS_" class[i] "] = \"" class[i] "\"," }
	print "};"
}

function exports(	i) {
	for (i = 1; i <= n; i++) print name[i]
	print "dlsym"
	print "dlvsym"
	print "InitializeInjection"
	print "weir_bound_by_audit"
}

function manual(	i, j, count, last, line) {
	print ".\\\" Made by api/lists.awk.\n.Dd November 20, 2026\n.Dt WEIR-CALLS 7\n.Os\n.Sh NAME\n.Nm weir-calls"
	print ".Nd the CUDA functions that Weir knows\n.Sh DESCRIPTION"
	print "Each with its class, which is what"
	print ".Xr weir-trace 1\nselects by, and its arguments."
	print "Functions of the driver that are not here are passed through and counted by name."
	for (i = 1; i <= n; i++) {
		if (api[i] " " class[i] != last) {
			if (last != "") print ".El"
			last = api[i] " " class[i]
			print ".Ss " (api[i] == "driver" ? "Driver" : "Runtime") ": " class[i] "\n.Bl -tag -width 4n -compact"
		}
		line = ".It Fn " name[i]
		count = split_args(i)
		for (j = 1; j <= count; j++)
			if (from[j] == "") line = line " \"" (out[j] ? "out " : "") type[j] " " arg[j] "\""
		print line
	}
	print ".El\n.Sh SEE ALSO\n.Xr weir-record 1 ,\n.Xr weir-trace 1"
}

END {
	if (failed) exit 1
	if (want == "ids") ids()
	else if (want == "schema") schema()
	else if (want == "enums") enum_names()
	else if (want == "table") table()
	else if (want == "classes") { print "/* Made by api/lists.awk. */\n#include \"fn_ids.h\"\n"; classes_table() }
	else if (want == "exports") exports()
	else if (want == "manual") manual()
	else if (want !~ /^(driver|runtime|above)$/) fail("want=" want " is nothing that I know")
}
