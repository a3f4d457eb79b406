# Turns the tables of this directory into C.
#
#	awk -v want=WHAT -f api/gen.awk api/types.tbl api/enums.tbl api/cuda.tbl api/cudart.tbl
#
# WHAT     ids       enum fn, enum fn_class                         (fn_ids.h)
#          schema    the schema text of docs/reference/trace-format.md        (schema_text.c)
#          enums     names of enumeration values                    (enum_names.c)
#          driver    one wrapper a function of the driver           (hook_driver.c)
#          runtime   one wrapper a function of the runtime          (hook_runtime.c)
#          injected  a record of each call that CUPTI tells of      (hook_injected.c)
#          table     names, classes and wrappers by id              (hook_table.c)
#          exports   the exported symbols, one a line               (hook_exports.txt)
#          manual    the calls as a manual page                     (weir-calls.7)

/^#/ || NF == 0 { next }
FILENAME ~ /types\.tbl$/ { 
	kind[$1] = $2; type_order[++types] = $1
	line = $0; sub(/^[^ ]+ +[^ ]+ +/, "", line); ctype[$1] = line
	next
}
FILENAME ~ /enums\.tbl$/ {
	if (!($1 in enum)) { enum[$1] = 1; enum_order[++enums] = $1 }
	value[++values] = $1 "\t" $2 "\t" $3
	next
}
{
	n++
	class[n] = $1; name[n] = $2; since[n] = $3; record[n] = $4
	attributes_of(n)
	api[n] = FILENAME ~ /cudart\.tbl$/ ? "runtime" : "driver"
	$1 = $2 = $3 = $4 = ""
	args[n] = $0; sub(/^ +/, "", args[n])
	if (api[n] == "driver") drivers = n
}

# "call,after,ends": what the event means, then attributes.
function attributes_of(i,	part, count, j) {
	count = split(record[i], part, ",")
	record[i] = part[1]
	for (j = 2; j <= count; j++) {
		if (part[j] !~ /^(after|ends|ends-context|gate|settles|settles-all|settles-record|settles-wait|forgets|begins|memory)$/) fail(name[i] ": '" part[j] "' is no attribute")
		attribute[i, part[j]] = 1
	}
}

function has(i, what) { return (i, what) in attribute }

function fail(text) { print "gen.awk: " text > "/dev/stderr"; failed = 1; exit 1 }

# Splits the arguments of row i into type[], arg[], out[], from[] (derived); returns how many.
function split_args(i,	parts, count, j, words, m) {
	delete type; delete arg; delete out; delete from
	count = args[i] == "" ? 0 : split(args[i], parts, /, /)
	for (j = 1; j <= count; j++) {
		from[j] = ""
		if (m = index(parts[j], "=")) { from[j] = substr(parts[j], m + 1); parts[j] = substr(parts[j], 1, m - 1) }
		out[j] = sub(/^out /, "", parts[j])
		words = split(parts[j], part, " ")
		if (words != 2) fail(name[i] ": argument '" parts[j] "' is not 'type name'")
		type[j] = part[1]; arg[j] = part[2]
		if (kind_of(type[j]) == "") fail(name[i] ": unknown type " type[j])
	}
	return count
}

function kind_of(t) { return t ~ /\*$/ ? "ptr" : t in kind ? kind[t] : t in enum ? "enum" : "" }
function c_type(t) { return t ~ /\*$/ ? "void *" : t in ctype ? ctype[t] : "int" }
function words_of(k) { return k == "dim3" ? 2 : k == "extent" ? 3 : k == "ipc" ? 0 : 1 }
function bytes_of(t,	c) {
	c = c_type(t)
	return c ~ /\*|long|size_t/ ? 8 : c ~ /short/ ? 2 : c ~ /char/ ? 1 : c ~ /dim3/ ? 12 : c ~ /extent/ ? 24 : c ~ /ipc/ ? 64 : 4
}

function ids(	i, seen) {
	print "/* Made by api/gen.awk. */\n#ifndef WEIR_FN_IDS_H\n#define WEIR_FN_IDS_H\n\nenum fn {\n\tFN_NONE = 0,"
	for (i = 1; i <= n; i++) print "\tFN_" name[i] " = " i ","
	print "\tFN_COUNT = " n + 1 ",\n\tFN_DRIVER_END = " drivers + 1 ",\n};\n\nenum fn_class {"
	for (i = 1; i <= n; i++)
		if (!(class[i] in seen)) { seen[class[i]] = 1; print "\tCLASS_" class[i] "," }
	print "\tCLASS_COUNT\n};\n\nextern const char *const class_names[CLASS_COUNT];\n#endif"
}

function schema_line(i) {
	return i " " api[i] " " class[i] " " record[i] " " name[i] "(" args[i] ")"
}

function schema(	i, t, text, used) {
	print "/* Made by api/gen.awk. */\n#include \"event/schema_text.h\"\n\nconst char schema_text[] ="
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
	print "/* Made by api/gen.awk. */\n#include \"event/schema_text.h\"\n\nconst struct enum_name enum_names[] = {"
	order = "LC_ALL=C sort -t'\t' -k1,1 -k2,2n"
	for (i = 1; i <= values; i++) print value[i] | (order " > '" sorted "'")
	close(order " > '" sorted "'")
	while ((getline line < sorted) > 0) {
		split(line, part, "\t")
		print "\t{ \"" part[1] "\", " part[2] ", \"" part[3] "\" },"
	}
	print "};\nconst unsigned enum_names_count = sizeof enum_names / sizeof *enum_names;"
}

# --- wrappers ---------------------------------------------------------------------------

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
function passed_gate(i, count,	j, text, a) {
	if (!has(i, "gate")) return passed(count)
	for (j = 1; j <= count; j++)
		if (from[j] == "") {
			a = type[j] == "CUstream" && arg[j] "_" == stream_arg(count) ? "gated.stream" : arg[j] "_"
			if (record[i] == "launchex" && j == 1) a = "(void *)on"
			text = text (text == "" ? "" : ", ") a
		}
	return text
}

# What the gate is told of row i before the driver is.
function gate_call(i, count,	stream, what) {
	stream = stream_arg(count) == "" ? "NULL" : stream_arg(count)
	if (record[i] == "launchex")
		return "struct cu_launch_config copy;\n\tconst struct cu_launch_config *const on = gate_config(&gated, f_, config_, " ptsz(i) ", &copy)"
	if (record[i] == "launch")
		return sprintf("gate_kernel(&gated, f_, %s, %d, %s_, %s_, %s_, %s_, %s_, %s_, %s_, %s)", stream, ptsz(i), \
			arg[2], arg[3], arg[4], arg[5], arg[6], arg[7], arg[8], name[i] ~ /Cooperative/ ? "false" : "true")
	what = record[i] ~ /^(launchold|graphlaunch)/ ? arg[1] "_" : "NULL"
	return sprintf("gate_other(&gated, %s, %s, %d, %s)", what, stream, ptsz(i), \
		bytes_expr(i) == "" ? "0" : bytes_expr(i))
}

function handle_arg(t, count,	j) {
	for (j = 1; j <= count; j++) if (type[j] == t && !out[j]) return arg[j] "_"
	return "NULL"
}

# What a call settles when it returns; "" for most.
function settles(i) {
	return has(i, "settles") ? (class[i] == "copy" ? "SETTLES_COPY" : "SETTLES_STREAM") : has(i, "settles-all") ? "SETTLES_ALL" : \
		has(i, "settles-record") ? "SETTLES_RECORD" : has(i, "forgets") ? "SETTLES_FORGET" : \
		has(i, "settles-wait") ? "SETTLES_WAIT" : !has(i, "ends-context") ? "" : \
		name[i] ~ /Reset/ ? "SETTLES_RESET" : "SETTLES_ENDED"
}

function settling(i, count) {
	if (settles(i) == "") return
	print "\tstruct settling settling;"
	print "\tgate_settling(&settling, " settles(i) ", " handle_arg("CUevent", count) ", " handle_arg("CUstream", count) ", " per_thread(i) ");"
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
	if (out[j]) return "(c.result || !" arg[j] "_ ? 0 : word_of_" width(type[j]) "(" arg[j] "_))"
	if (k == "ptr" && t ~ /\*$/) return "(uintptr_t)" arg[j] "_"
	if (k == "float") return "float_bits(" arg[j] "_)"
	if (k == "int" || k == "enum") return "(uint64_t)(int64_t)" arg[j] "_"
	return arg[j] "_"
}

function width(t,	k) { # how an output of this type is read
	k = kind_of(t)
	return k == "int" || k == "enum" ? "i32" : "u" bytes_of(t) * 8
}

function stream_arg(count,	j) {
	for (j = count; j >= 1; j--) if (type[j] == "CUstream") return arg[j] "_"
	return ""
}

# 1 for a launch that went into a graph: what struct counter has as bytes of a launch.
function captured_expr(i, count,	stream) {
	if (api[i] == "runtime") return ""
	stream = record[i] == "launchex" ? "config_stream(config_)" : stream_arg(count)
	return stream == "" ? "" : "is_captured(" stream ", " ptsz(i) ")"
}

# Calls of these classes only queue work or ask.
function may_block(i) { return class[i] !~ /^(launch|set|event|stream|query)$/ }

# Launches whose arguments can be read: they are given to the call itself.
function has_params(i) { return api[i] == "driver" && record[i] ~ /^(launch|launchex)$/ }

# Launches that may be timed: of kernels and of graphs, on a stream that they name.
function is_sampled(i) { return has_params(i) || record[i] ~ /^graphlaunch/ }

# Copies and sets of memory on a stream that they name: timed where the whole timeline is to be reconstructed.
function is_timed_move(i, count) {
	return api[i] == "driver" && record[i] ~ /^(copy|set):/ && stream_arg(count) != "" && bytes_expr(i) != ""
}

function move_direction(i,	d) {
	if (record[i] ~ /^set:/) return "0"
	d = match(record[i], /:d=[A-Za-z]+/) ? substr(record[i], RSTART + 3, RLENGTH - 3) : ""
	if (d == "Peer") return "COPY_PTOP"
	return d ~ /^[HDA]to[HDA]$/ ? "COPY_" toupper(d) : "0"
}

function argument(count, wanted,	j) {
	for (j = 1; j <= count; j++) if (arg[j] == wanted) return arg[j] "_"
	return "NULL"
}

function is_launch(r) { return r ~ /^(launch|launchex|launchold|rtlaunch)$/ }

function fill_launch(i, count) {
	if (record[i] == "launch")
		printf "\t\tlaunch_fill(r, (uintptr_t)%s_, (uintptr_t)%s, %s_, %s_, %s_, %s_, %s_, %s_, %s_);\n", \
			arg[1], stream_arg(count), arg[2], arg[3], arg[4], arg[5], arg[6], arg[7], arg[8]
	else if (record[i] == "launchex")
		printf "\t\tlaunch_fill_config(r, (uintptr_t)%s_, %s_, extended);\n", arg[2], arg[1]
	else if (record[i] == "launchold")
		printf("\t\tlaunch_fill(r, (uintptr_t)%s_, %s, %s, %s, 1, 0, 0, 0, 0);\n", arg[1], \
			(stream_arg(count) == "" ? "0" : "(uintptr_t)" stream_arg(count)), \
			(count >= 2 ? arg[2] "_" : 1), (count >= 3 ? arg[3] "_" : 1))
	else
		printf "\t\tlaunch_fill(r, (uintptr_t)%s_, (uintptr_t)%s_, %s_.x, %s_.y, %s_.z, %s_.x, %s_.y, %s_.z, %s_);\n", \
			arg[1], arg[6], arg[2], arg[2], arg[2], arg[3], arg[3], arg[3], arg[5]
}

function fill_args(i, count,	j, w, k) {
	w = 0
	for (j = 1; j <= count; j++) {
		k = kind_of(type[j])
		if (k == "ipc") continue
		if (k == "dim3" && !out[j]) {
			print "\t\tr->arg[" w "] = " arg[j] "_.x | (uint64_t)" arg[j] "_.y << 32;"
			print "\t\tr->arg[" w + 1 "] = " arg[j] "_.z;"
		} else if (k == "extent") {
			print "\t\tr->arg[" w "] = " arg[j] "_.width, r->arg[" w + 1 "] = " arg[j] "_.height, r->arg[" w + 2 "] = " arg[j] "_.depth;"
		} else if (k == "str") {
			print "\t\tr->arg[" w "] = " arg[j] "_ ? " arg[j] "_bytes : UINT64_MAX;"
		} else
			print "\t\tr->arg[" w "] = " word_expr(j) ";"
		if (out[j] && j <= 32) print "\t\tr->aux |= (uint32_t)(c.result || !" arg[j] "_) << " j - 1 ";"
		w += words_of(k)
	}
	return w
}

function arg_words(count,	j, w) {
	for (j = 1; j <= count; j++) w += words_of(kind_of(type[j]))
	return w + 0
}

function ptsz(i) { return (name[i] ~ /_ptsz$/) + 0 }

function per_thread(i) { return (name[i] ~ /_pt(s|d)(z|s)$/) + 0 }

# The lines of row i that say which call of wrapper.h stands before, around and behind the real one.
function begin(i, count) {
	if (record[i] == "launchex") return "launch_begin_config(&c, config_, " ptsz(i) ", f_)"
	if (record[i] == "launch")
		return sprintf("launch_begin(&c, %s, %s, f_, SHAPE(%s_, %s_, %s_, %s_, %s_, %s_, %s_))", \
			stream_arg(count), ptsz(i), arg[2], arg[3], arg[4], arg[5], arg[6], arg[7], arg[8])
	if (is_sampled(i)) return "launch_begin(&c, " stream_arg(count) ", " ptsz(i) ", " arg[1] "_, 0)"
	if (is_timed_move(i, count))
		return "move_begin(&c, " stream_arg(count) ", " ptsz(i) ", " bytes_expr(i) ", " (may_block(i) ? "true" : "false") ")"
	return (may_block(i) ? "call_begin_long" : "call_begin") "(&c)"
}

function timed(i) {
	if (record[i] == "launch")
		return sprintf("launch_time(&c, f_, %s_, %s_, %s_, %s_, %s_, %s_, %s_)", \
			arg[2], arg[3], arg[4], arg[5], arg[6], arg[7], arg[8])
	return record[i] == "launchex" ? "launch_time_config(&c, f_, config_)" : "graph_time(&c)"
}

function record_call(i, count, words, apart) {
	words = "RECORD_WORDS + " words
	if (has_params(i))
		return "launch_record(&c, &given, " argument(count, "f") ", " argument(count, "kernelParams") ", " \
			argument(count, "extra") ", " words ")"
	return (is_sampled(i) ? "graph_record" : "call_record" apart) "(&c, " words ")"
}

function commit_call(i, at, apart) {
	if (has_params(i)) return "launch_commit(&c, &given, r, " at ")"
	return is_sampled(i) ? "graph_commit(&c, r)" : "call_commit" apart "(r, FN_" name[i] ")"
}

# `, a, b` for a call that has arguments before these.
function more_passed(count) { return count ? ", " passed(count) : "" }

function after(i, count, indent) {
	if (has(i, "after")) print indent "\tafter_" clean_name(i) "(c.result" more_passed(count) ");"
}

function wanted_bits(i) {
	return (api[i] == "runtime" ? "CONTROL_RUNTIME" : "1u << CLASS_" class[i]) (class[i] == "query" ? " | CONTROL_QUERY_COUNT" : "") \
		(stack_group(i) == "" ? "" : " | " stack_bits(i))
}

# By what its stack is asked for: src/event/stack_group.h.  A call of the runtime leaves that to the driver's below.
function stack_group(i) {
	if (api[i] == "runtime") return ""
	if (record[i] ~ /^alloc/ || name[i] ~ /Array(3D)?Create/ || name[i] ~ /HostRegister/) return "STACK_ALLOC"
	if (record[i] ~ /^free/ || name[i] ~ /ArrayDestroy|HostUnregister/) return "STACK_FREE"
	return class[i] ~ /^(sync|launch|copy|set|graph|module)$/ ? "STACK_" toupper(class[i]) : ""
}

# A copy that waits for its end is a synchronisation, too.
function stack_bits(i) {
	return "CONTROL_STACK(" stack_group(i) ")" (class[i] == "copy" && name[i] !~ /Async/ ? " | CONTROL_STACK(STACK_SYNC)" : "")
}

function wrapper(i,	count, bits, nbytes) {
	count = split_args(i)
	bits = wanted_bits(i)
	if (class[i] == "query") counted(i, count)
	print "static __attribute__((noinline)) int recorded_" name[i] "(" parameters(count) ")\n{"
	print "\tint (*real)(" types_only(count) ") = real_of(FN_" name[i] ");"
	print "\tstruct call c;"
	if (has(i, "memory")) print "\tif (!memory_is_plain())\n\t\treal = memory_" name[i] ";"
	if (has(i, "ends") || has(i, "ends-context")) print "\tparams_invalidate_all();"
	if (has(i, "ends-context")) print "\tcontext_ends();"
	if (has(i, "ends")) print "\tgate_module_ends();"
	if (has(i, "begins")) print "\tgate_driver_begins();"
	if (has(i, "gate")) print "\tstruct gated gated;\n\t" gate_call(i, count) ";"
	settling(i, count)
	if (has_more(i)) {
		print "\tif (!call_is_wanted(&c, FN_" name[i] ", " bits ")) {\n\t\tc.result = real(" passed_gate(i, count) ");"
		returned(i, "\t")
		behind(i, count, "\t")
		print "\t\treturn c.result;\n\t}"
	} else
		print "\tif (!call_is_wanted(&c, FN_" name[i] ", " bits "))\n\t\treturn real(" passed(count) ");"
	if (class[i] == "query")
		counts_query(i, count)
	print "\t" begin(i, count) ";"
	if (api[i] == "runtime") print "\tcall_looks(&c);"
	print "\tc.result = real(" passed_gate(i, count) ");"
	returned(i, "")
	if (may_block(i)) print "\tcall_returned();"
	emit_record(i, count, may_block(i) ? "_apart" : "")
	if (is_sampled(i)) print "\t" timed(i) ";"
	if (is_timed_move(i, count))
		print "\tmove_time(&c, " (record[i] ~ /^set:/ ? "GPU_MEMSET" : "GPU_MEMCPY") ", " bytes_expr(i) ", " move_direction(i) ");"
	nbytes = is_launch(record[i]) || record[i] ~ /^graphlaunch/ ? captured_expr(i, count) : bytes_expr(i)
	graphed = record[i] ~ /^(copy|set):/ ? captured_expr(i, count) : "" # which moves nothing yet
	if (nbytes != "") print("\tif (call_is_counted(&c)" (graphed == "" ? "" : " && !" graphed) ")\n\t\tcount_bytes(FN_" name[i] ", " nbytes ");")
	print "\tcall_left();"
	behind(i, count, "")
	print "\treturn c.result;\n}\n"
	entry(i, count, bits)
}

# Whether something follows the call, recorded or not.
function has_more(i) { return has(i, "after") || has(i, "gate") || settles(i) != "" }

function returned(i, indent) {
	if (has(i, "gate")) print indent "\tgate_returned(&gated);"
}

function behind(i, count, indent) {
	if (has(i, "gate")) print indent "\tgate_passed(&gated, c.result);"
	if (settles(i) != "") print indent "\tgate_settled(&settling, c.result);"
	after(i, count, indent)
}

function counts_query(i, count) {
	print "\tif (query_is_counted(&c)) {\n\t\tc.result = real(" passed(count) ");"
	if (settles(i) != "") print "\tgate_settled(&settling, c.result);"
	print "\t\treturn counted_" name[i] "(c.result" more_passed(count) ");\n\t}"
}

# Whether the call can't go straight to the driver while launches are regulated.
function is_regulated(i) { return has(i, "gate") || settles(i) != "" }

# What else has to hold before the call goes straight to the driver.
function straight(i) { return (is_regulated(i) ? " && gate_is_open()" : "") (has(i, "memory") ? " && memory_is_plain()" : "") }

# What the program calls makes no frame of its own: it jumps, to the driver or to the above.
function entry(i, count, bits) {
	print "WRAPPER int " name[i] "(" parameters(count) ")\n{"
	if (!has(i, "after") && !has(i, "ends") && !has(i, "ends-context")) {
		print "\tint (*real)(" types_only(count) ") = __atomic_load_n(&hook_real[FN_" name[i] "], __ATOMIC_RELAXED);"
		print "\tconst uint32_t want = wanted(" bits ");"
		print "\tif (real && !want_is_any(want)" straight(i) ")\n\t\treturn real(" passed(count) ");"
	}
	if (!has(i, "after") && class[i] == "query") {
		print "\tif (__builtin_expect(real && counts_only(want)" straight(i) ", 1)) {"
		print "\t\tcall_entered();\n\t\tconst int answer = real(" passed(count) ");"
		print "\t\treturn query_is_quick(FN_" name[i] ", answer) ? answer : counted_" name[i] "(answer" more_passed(count) ");\n\t}"
	}
	print "\treturn recorded_" name[i] "(" passed(count) ");\n}\n"
}

# A query that has been answered: counted when it succeeded, else recorded after all.
function counted(i, count) {
	print "static __attribute__((noinline)) int counted_" name[i] "(int result" (count ? ", " parameters(count) : "") ")\n{"
	print "\tstruct call c;\n\tcall_is_answered(&c, FN_" name[i] ", CONTROL_QUERY_COUNT, result);"
	after(i, count)
	print "\tif (query_count(&c))\n\t\treturn result;\n\tc.begun = clock_now();"
	emit_record(i, count, "_apart")
	print "\tcall_left();\n\treturn result;\n}\n"
}

function clean_name(i,	s) { s = name[i]; sub(/_(ptsz|ptds)$/, "", s); return s }

# The record of a call: the room it takes, its words, and texts behind them.  apart: "_apart" where its time does not
# matter, so that the code is small and compiles quickly.
function emit_record(i, count, apart,	j, w, m, text, extra, strings) {
	w = is_launch(record[i]) ? "LAUNCH_WORDS" : arg_words(count)
	for (j = 1; j <= count; j++)
		if (kind_of(type[j]) == "str" && !out[j] && !is_launch(record[i])) {
			strings[++m] = arg[j]
			text = text " + text_words(" arg[j] "_bytes)"
			print "\tconst uint32_t " arg[j] "_bytes = text_bytes(" arg[j] "_);"
		}
	if (record[i] == "launchex") {
		print "\tconst uint32_t extended = launch_extra(config_); /* once: another thread may change it */"
		extra = " + extended"
	}
	if (has_params(i)) print "\tstruct launch_given given;"
	print "\tstruct record *r = " record_call(i, count, w text extra, apart) ";"
	print "\tif (r) {"
	if (is_launch(record[i])) fill_launch(i, count)
	else {
		fill_args(i, count)
		for (j = 1; j <= m; j++)
			print "\t\t" (j == 1 ? "char *text = " : "text = ") "text_put(r, " (j == 1 ? "(char *)(r->arg + " w ")" : "text") ", " strings[j] "_, " strings[j] "_bytes);"
		if (m) print "\t\t(void)text;"
	}
	if (api[i] == "driver" && class[i] ~ /^(launch|copy|set|memory)$/) {
		if (record[i] == "launchex") print "\t\tmark_captured(r, config_stream(config_), " ptsz(i) ");"
		else if (stream_arg(count) != "") print "\t\tmark_captured(r, " stream_arg(count) ", " ptsz(i) ");"
	}
	print "\t\t" commit_call(i, w extra, apart) ";\n\t}"
}

# A call that CUPTI tells of: its arguments stand in a structure, in order.
function injected(i,	count, j) {
	count = split_args(i)
	print "static void injected_" name[i] "(const void *params, uint64_t begun, int result, uint32_t want)\n{"
	if (count) {
		print "\tconst struct {"
		for (j = 1; j <= count; j++)
			if (from[j] == "") print "\t\t" param_type(j) (param_type(j) ~ /\*$/ ? "" : " ") arg[j] ";"
		print "\t} *p = params;"
		for (j = 1; j <= count; j++)
			if (from[j] == "" && (out[j] || kind_of(type[j]) != "ipc")) print "\t" param_type(j) (param_type(j) ~ /\*$/ ? "" : " ") arg[j] "_ = p->" arg[j] ";"
	}
	print "\tstruct call c;\n\tcall_is_answered(&c, FN_" name[i] ", want, result);\n\tc.begun = begun;"
	print "\tcall_entered();"
	emit_record(i, count, "_apart")
	print "\tcall_left();"
	if (has(i, "ends") || has(i, "ends-context")) print "\tparams_invalidate_all();"
	after(i, count)
	print "}\n"
}

function wrappers(which,	i) {
	print "/* Made by api/gen.awk. */\n#include \"hook/core/wrapper.h\"\n"
	for (i = 1; i <= n; i++) if (api[i] == which) wrapper(i)
}

function injections(	i) {
	print "/* Made by api/gen.awk. */\n#include \"hook/core/wrapper.h\"\n#include \"hook/core/inject.h\"\n"
	for (i = 1; i <= drivers; i++) injected(i)
	print "injected_fn *const injected_calls[FN_DRIVER_END] = {"
	for (i = 1; i <= drivers; i++) print "\t[FN_" name[i] "] = injected_" name[i] ","
	print "};"
}

function table(	i, seen, classes, j) {
	print "/* Made by api/gen.awk. */\n#include \"event/format.h\"\n#include \"hook/core/hook_table.h\"\n"
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
	classes_table()
}

function classes_table(	i, seen) {
	print "const char *const class_names[CLASS_COUNT] = {"
	for (i = 1; i <= n; i++)
		if (!(class[i] in seen)) { seen[class[i]] = 1; print "\t[CLASS_" class[i] "] = \"" class[i] "\"," }
	print "};"
}

function exports(prefix, suffix,	i) {
	for (i = 1; i <= n; i++) print prefix name[i] suffix
	print prefix "dlsym" suffix
	print prefix "dlvsym" suffix
	print prefix "InitializeInjection" suffix
	print prefix "weir_bound_by_audit" suffix
}

function manual(	i, j, count, last, line) {
	print ".\\\" Made by api/gen.awk.\n.Dd November 20, 2026\n.Dt WEIR-CALLS 7\n.Os\n.Sh NAME\n.Nm weir-calls"
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
	else if (want == "driver" || want == "runtime") wrappers(want)
	else if (want == "injected") injections()
	else if (want == "table") table()
	else if (want == "classes") { print "/* Made by api/gen.awk. */\n#include \"fn_ids.h\"\n"; classes_table() }
	else if (want == "exports") exports("", "")
	else if (want == "manual") manual()
	else fail("want=" want " is nothing that I know")
}
