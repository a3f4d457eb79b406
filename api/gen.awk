# Turns each function of the tables into macros.
#
#	awk -v want=WHAT -f api/tables.awk -f api/gen.awk -f api/lists.awk api/types.tbl api/enums.tbl api/cuda.tbl api/cudart.tbl
#
# WHAT     driver    the functions of the driver                    (hook_driver.h)
#          runtime   those of the runtime                           (hook_runtime.h)
#          above     types of the driver's functions, prototypes of after_NAME() and memory_NAME()   (named_functions.h)
#
# A function is a list of macros ROW_..., its attributes as HAS_..., its class as IS_..., what its record is as AS_...;
# then the file ROW_TEMPLATE, which is C: src/hook/wrapper_row.inc.  A function's meaning is in its
# row and in that file, not here.

function param_type(j) { return out[j] ? "void *" : c_type(type[j]) }

function parameters(count,	j, text) {
	for (j = 1; j <= count; j++)
		if (from[j] == "") text = text (text == "" ? "" : ", ") param_type(j) (param_type(j) ~ /\*$/ ? "" : " ") arg[j] "_"
	return text == "" ? "void" : text
}

function types_only(count,	j, text) {
	for (j = 1; j <= count; j++)
		if (from[j] == "") text = text (text == "" ? "" : ", ") param_type(j)
	return text == "" ? "void" : text
}

function passed(count,	j, text) {
	for (j = 1; j <= count; j++)
		if (from[j] == "") text = text (text == "" ? "" : ", ") arg[j] "_"
	return text
}

# The same with what the gate has put in the place of the stream.
function sent(i, count,	j, text, a) {
	if (!has(i, "gate")) return passed(count)
	for (j = 1; j <= count; j++)
		if (from[j] == "") {
			a = type[j] == "CUlaunchConfig*" ? "(void *)on" : arg[j] "_" == argument_of("CUstream", count) ? "gated.stream" : arg[j] "_"
			text = text (text == "" ? "" : ", ") a
		}
	return text
}

# The last argument of that type that is not filled by the driver; "": there is none.
function argument_of(t, count,	j) {
	for (j = count; j >= 1; j--) if (type[j] == t && !out[j]) return arg[j] "_"
	return ""
}

function argument_named(wanted, count,	j) {
	for (j = 1; j <= count; j++) if (arg[j] == wanted) return arg[j] "_"
	return "NULL"
}

# The C expression for the bytes that row i moves ("2*3x4" multiplies arguments 2 and 3 and 4).
function bytes_expr(i,	m, spec, part, count, j, text, factor) {
	if (!match(record[i], /:n=[0-9*x]+/)) return ""
	spec = substr(record[i], RSTART + 3, RLENGTH - 3)
	factor = ""
	if (m = index(spec, "x")) { factor = " * " substr(spec, m + 1); spec = substr(spec, 1, m - 1) }
	count = split(spec, part, "*")
	for (j = 1; j <= count; j++) text = text (j > 1 ? " * " : "") "(uint64_t)" word_expr(part[j] + 1)
	return text factor
}

function word_expr(j,	k, t) {
	k = kind_of(type[j]); t = c_type(type[j])
	if (from[j] != "") return "derive_" substr(from[j], 1, length(from[j]) - 1) "_)"
	if (out[j]) return "answer_" width(type[j]) "(c->result, " arg[j] "_)"
	if (k == "ptr" && t ~ /\*$/) return "(uintptr_t)" arg[j] "_"
	if (k == "float") return "float_bits(" arg[j] "_)"
	if (k == "int" || k == "enum") return "(uint64_t)(int64_t)" arg[j] "_"
	return arg[j] "_"
}

function width(t,	k) { # how an output of this type is read
	k = kind_of(t)
	return k == "int" || k == "enum" ? "i32" : "u" bytes_of(t) * 8
}

# Which way a copy goes, for its record.
function direction(i,	d) {
	d = match(record[i], /:d=[A-Za-z]+/) ? substr(record[i], RSTART + 3, RLENGTH - 3) : ""
	return record[i] !~ /^copy:/ ? "0" : d == "Peer" ? "COPY_PTOP" : d ~ /^[HDA]to[HDA]$/ ? "COPY_" toupper(d) : "0"
}

# The statements that put the arguments of a row into its record.
function fill(count,	j, w, k, text) {
	w = 0
	for (j = 1; j <= count; j++) {
		k = kind_of(type[j])
		if (k == "ipc") continue
		if (k == "dim3" && !out[j])
			text = text "r->arg[" w "] = " arg[j] "_.x | (uint64_t)" arg[j] "_.y << 32; r->arg[" w + 1 "] = " arg[j] "_.z; "
		else if (k == "extent")
			text = text "r->arg[" w "] = " arg[j] "_.width, r->arg[" w + 1 "] = " arg[j] "_.height, r->arg[" w + 2 "] = " arg[j] "_.depth; "
		else
			text = text "r->arg[" w "] = " (k == "str" ? arg[j] "_ ? " arg[j] "_bytes : UINT64_MAX" : word_expr(j)) "; "
		if (out[j] && j <= 32) text = text "r->aux |= (uint32_t)(c->result || !" arg[j] "_) << " j - 1 "; "
		w += words_of(k)
	}
	return text
}

function arg_words(count,	j, w) {
	for (j = 1; j <= count; j++) w += words_of(kind_of(type[j]))
	return w + 0
}

function wanted_bits(i) {
	return (api[i] == "runtime" ? "CONTROL_RUNTIME" : "1u << CLASS_" class[i]) (class[i] == "query" ? " | CONTROL_QUERY_COUNT" : "") \
		(stack_group(i) == "" ? "" : " | " stack_bits(i))
}

# after_NAME() of the row: versions that differ only in what is passed to the driver share one.
function after_name(i) { return "after_" (attribute[i, "after"] == 1 ? name[i] : attribute[i, "after"]) }

function define(what, value) { print "#define " what (value == "" ? "" : " " value); defined[++defines] = what }

function flag(prefix, word, value) { gsub(/-/, "_", word); define(prefix word, value ? 1 : 0) }

function define_row(i,	count, j, m, w, list, sizes, words, puts, fields, unpack, stream, declared) {
	count = split_args(i)
	stream = argument_of("CUstream", count)
	w = arg_words(count)
	for (j = 1; j <= count; j++) {
		if (from[j] == "") {
			declared = param_type(j) (param_type(j) ~ /\*$/ ? "" : " ")
			fields = fields declared arg[j] "; "
			unpack = unpack declared arg[j] "_ = p->" arg[j] "; "
		}
		if (kind_of(type[j]) != "str" || out[j]) continue
		sizes = sizes "const uint32_t " arg[j] "_bytes = text_bytes(" arg[j] "_); "
		words = words " + text_words(" arg[j] "_bytes)"
		puts = puts (puts == "" ? "char *text = " : "text = ") "text_put(r, " (puts == "" ? "(char *)(r->arg + " w ")" : "text") ", " arg[j] "_, " arg[j] "_bytes); "
	}
	define("ROW_NAME", name[i])
	define("ROW_PARAMS", parameters(count))
	define("ROW_TYPES", types_only(count))
	define("ROW_PASSED", passed(count))
	define("ROW_SENT", sent(i, count))
	define("ROW_MORE", passed(count) == "" ? "" : ", " passed(count))
	define("ROW_MORE_PARAMS", passed(count) == "" ? "" : ", " parameters(count))
	define("ROW_FIELDS", fields == "" ? "char none;" : fields)
	define("ROW_UNPACK", unpack)
	define("ROW_BITS", "(" wanted_bits(i) ")")
	define("ROW_WORDS", w)
	define("ROW_FILL", fill(count))
	define("ROW_TEXT_SIZES", sizes)
	define("ROW_TEXT_WORDS", words)
	define("ROW_TEXT_PUT", puts == "" ? "" : puts "(void)text;")
	define("ROW_HAS_STREAM", stream != "" ? 1 : 0)
	define("ROW_STREAM", stream != "" ? stream : "NULL")
	define("ROW_EVENT", argument_of("CUevent", count) != "" ? argument_of("CUevent", count) : "NULL")
	define("ROW_HAS_BYTES", bytes_expr(i) != "" ? 1 : 0)
	define("ROW_BYTES", bytes_expr(i) != "" ? "(" bytes_expr(i) ")" : 0)
	define("ROW_DIRECTION", direction(i))
	define("ROW_FIRST", count ? arg[1] "_" : "")
	define("ROW_GRID", count >= 3 ? "(uint32_t)" arg[2] "_, (uint32_t)" arg[3] "_, 1" : "1, 1, 1")
	define("ROW_EXTRA", argument_named("extra", count))
	define("ROW_SETTLES", has(i, "settles") ? "SETTLES_" toupper(attribute[i, "settles"]) : "SETTLES_NOTHING")
	if (has(i, "after")) define("ROW_AFTER_NAME", after_name(i))
	m = split(ATTRIBUTES, list, " ")
	for (j = 1; j <= m; j++) flag("HAS_", list[j], has(i, list[j]))
	m = split(CLASSES, list, " ")
	for (j = 1; j <= m; j++) flag("IS_", list[j], class[i] == list[j])
	flag("IS_", "RUNTIME", api[i] == "runtime")
	m = split(KINDS, list, " ")
	for (j = 1; j <= m; j++) flag("AS_", list[j], record[i] ~ "^" list[j] "(:|$)")
}

function rows(which,	i, j) {
	print "/* Made by api/gen.awk. */"
	for (i = 1; i <= n; i++) {
		if (api[i] != which) continue
		define_row(i)
		print "#include ROW_TEMPLATE"
		for (j = 1; j <= defines; j++) print "#undef " defined[j]
		defines = 0
	}
}

function above(	i, count, seen) {
	print "/* Made by api/gen.awk. */\n#pragma once\n\n#include \"cuda_types.h\"\n"
	for (i = 1; i <= n; i++) {
		count = split_args(i)
		if (api[i] == "driver") print "typedef int real_" name[i] "(" types_only(count) ");"
		if (has(i, "memory")) print "int memory_" name[i] "(" parameters(count) ");"
		if (has(i, "after") && !(after_name(i) in seen)) {
			seen[after_name(i)] = 1
			print "void " after_name(i) "(int result" (passed(count) == "" ? "" : ", " parameters(count)) ");"
		}
	}
}

END {
	if (failed) exit 1
	if (want == "above") above()
	else if (want == "driver" || want == "runtime") rows(want)
}
