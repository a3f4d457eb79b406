# Reads the tables of functions, types and enumerations, for gen.awk and lists.awk.

BEGIN {
	ATTRIBUTES = "after ends ends-context gate settles begins memory ptsz ptds cooperative"
	KINDS = "launch launchex launchold graphlaunch rtlaunch copy set"
	CLASSES = "launch copy set event stream query memory sync"
}
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

# "call,after,settles=stream": what the event means, then attributes, each with its value or 1.
function attributes_of(i,	part, count, j, word) {
	count = split(record[i], part, ",")
	record[i] = part[1]
	for (j = 2; j <= count; j++) {
		split(part[j], word, "=")
		if (!index(" " ATTRIBUTES " stack waits ", " " word[1] " ")) fail(name[i] ": '" part[j] "' is no attribute")
		attribute[i, word[1]] = part[j] ~ /=/ ? word[2] : 1
	}
}

function has(i, what) { return (i, what) in attribute }

function fail(text) { print "api: " text > "/dev/stderr"; failed = 1; exit 1 }

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

# By what its stack is asked for: src/event/level.h.  A call of the runtime leaves that to the driver's below.
function stack_group(i) {
	if (api[i] == "runtime") return ""
	if (has(i, "stack")) return "STACK_" toupper(attribute[i, "stack"])
	if (record[i] ~ /^(alloc|free):/) return record[i] ~ /^alloc/ ? "STACK_ALLOC" : "STACK_FREE"
	return class[i] ~ /^(sync|launch|copy|set|graph|module)$/ ? "STACK_" toupper(class[i]) : ""
}

function stack_bits(i) {
	return "CONTROL_STACK(" stack_group(i) ")" (has(i, "waits") ? " | CONTROL_STACK(STACK_SYNC)" : "")
}
