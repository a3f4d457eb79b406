# Makes of ort.tbl a struct of typed functions, and a function that fills it from the table of slots:
# awk -f ort.awk ort.tbl

BEGIN { returns["status"] = "struct ort_status *"; returns["void"] = "void "; returns["int"] = "int "; returns["const_char"] = "const char *" }

function fail(text) { print FILENAME ":" FNR ": " text > "/dev/stderr"; failed = 1; exit 1 }

/^#/ || !NF { next }
{
	if ($1 !~ /^[0-9]+$/ || $1 <= last && n) fail("the slots ascend")
	if (!($3 in returns)) fail("'" $3 "' is nothing that a function returns")
	if ($2 in seen) fail($2 " stands there twice")
	seen[$2] = 1
	slot[++n] = last = $1
	name[n] = $2
	result[n] = returns[$3]
	sub(/^[0-9]+ +[^ ]+ +[^ ]+ +/, "")
	args[n] = $0
}

END {
	if (failed) exit 1
	print "/* Made from api/ort.tbl. */\n#pragma once\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
	print "struct ort_status;\nstruct ort_env;\nstruct ort_session;\nstruct ort_options;\nstruct ort_type;\nstruct ort_tensor;"
	print "struct ort_value;\nstruct ort_memory;\nstruct ort_allocator;"
	print "struct ort_run_options;\nstruct ort_binding;\nstruct ort_cuda;\nstruct ort_tensorrt;\n\nstruct ort_functions {"
	for (i = 1; i <= n; i++) print "\t" result[i] "(*" name[i] ")(" args[i] ");"
	print "};\n\nstatic inline void ort_fill(struct ort_functions *f, const void *const *slots)\n{"
	for (i = 1; i <= n; i++) print "\tmemcpy(&f->" name[i] ", &slots[" slot[i] "], sizeof f->" name[i] ");"
	print "}\n\n/* The other way round, for a runtime that tests make. */\nstatic inline void ort_put(const struct ort_functions *f, const void **slots)\n{"
	for (i = 1; i <= n; i++) print "\tmemcpy(&slots[" slot[i] "], &f->" name[i] ", sizeof f->" name[i] ");"
	print "}"
}
