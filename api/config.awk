# Writes the fields of model configurations (config_fields.c) from api/config.tbl: awk -f config.awk config.tbl

function fail(text)
{
	print FILENAME ":" FNR ": " text > "/dev/stderr"
	failed = 1
	exit 1
}

function c_string(s)
{
	gsub(/"/, "\\\"", s)
	return "\"" s "\""
}

function end_message()
{
	if (message == "")
		return
	printf "\nstatic const struct config_field fields_%s[] = {\n%s\t{ .name = NULL }\n};\n", message, fields
	printf "%sconst struct config_message config_%s = {\n\t\"%s\", fields_%s, %s\n};\n", \
		message ~ /^(ModelConfig|Weir)$/ ? "" : "static ", message, message, message, \
		c_struct == "-" ? 0 : "sizeof(" c_struct ")"
	fields = ""
}

BEGIN {
	split("string bool int32 uint32 int64 uint64 double shape dtype", list, " ")
	for (i in list)
		kind[list[i]] = "KIND_" toupper(list[i])
	split("one oneof many map levels", list, " ")
	for (i in list)
		label[list[i]] = "LABEL_" toupper(list[i])
	split("used kept ignored refused", list, " ")
	for (i in list)
		use[list[i]] = "USE_" toupper(list[i])
	FS = "[ \t]+[|][ \t]*"
	print "/* The fields of model configurations: made from api/config.tbl. */"
	print "#include \"store/config_reader.h\""
}

/^#/ || !NF { next }

/^enum / {
	name = substr($1, 6)
	enums[name] = 1
	printf "\nstatic const char *const values_%s[] = { ", name
	k = split($2, value, " ")
	for (i = 1; i <= k; i++)
		printf "\"%s\", ", value[i]
	print "NULL };"
	next
}

/^message / {
	end_message()
	message = substr($1, 9)
	c_struct = $2
	messages[message] = 1
	next
}

{
	sub(/[ \t]+$/, "")
	if (NF != 6)
		fail("6 fields expected, " NF " found")
	if (!($3 in label) || !($4 in use))
		fail("no such label or use: " $3 ", " $4)
	type = $2 in kind ? ".kind = " kind[$2] : \
		$2 in enums ? ".kind = KIND_ENUM, .values = values_" $2 : \
		$2 in messages ? ".kind = KIND_MESSAGE, .message = &config_" $2 : \
		$2 == "refused" ? ".kind = KIND_MESSAGE" : ""
	if (type == "")
		fail("no such type above: " $2)
	line = "\t{ .name = " c_string($1) ", " type ", .label = " label[$3] ", .use = " use[$4]
	if (use[$4] ~ /IGNORED|REFUSED/)
		line = line ", .why = " c_string($6)
	k = split($5, place, ",")
	if ($5 != "-") {
		line = line ", .placed = true, .at = " (place[1] == "=" ? 0 : "offsetof(" c_struct ", " place[1] ")")
		if (k == 2)
			line = line ", .counted = true, .count_at = offsetof(" c_struct ", " place[2] ")"
	}
	fields = fields line " },\n"
}

END {
	if (failed)
		exit 1
	end_message()
}
