# Turns infer.tbl into the tables of src/wire/message.c, or with route.tbl into a file for protoc:
#
#	awk -v out=c -f infer.awk infer.tbl
#	awk -v out=proto -v package=inference -f infer.awk infer.tbl route.tbl

function fail(text) { print FILENAME ":" FNR ": " text > "/dev/stderr"; failed = 1; exit 1 }

BEGIN {
	scalars = split("bool int32 int64 uint32 uint64 float double string bytes", scalar, " ")
	for (i = 1; i <= scalars; i++)
		is_scalar[scalar[i]] = 1
}
/^#/ || !NF { next }
FILENAME ~ /route\.tbl$/ {
	for (i = split($0, f, "|"); i > 0; i--)
		gsub(/^ +| +$/, "", f[i])
	if (f[4] == "-")
		next
	service = "inference.GRPCInferenceService"
	method = f[4]
	if (k = index(method, "/")) {
		service = substr(method, 1, k - 1)
		method = substr(method, k + 1)
	}
	match(service, /[^.]*$/)
	if (substr(service, 1, RSTART - 2) == package)
		rpc[++rpcs] = "\trpc " method "(" f[5] ") returns (" f[6] ");"
	if (rpcs == 1)
		service_name = substr(service, RSTART)
	next
}
$1 == "package" { current = $2; next }
$1 == "message" || $1 == "enum" {
	if ($2 in kind)
		fail($2 " stands twice")
	name[++n] = $2
	kind[$2] = $1
	number[$2] = $1 == "message" ? messages++ : enums++
	in_package[n] = current
	plain[n] = $3 == "plain"
	if ((k = match($2, /\.[^.]*$/)) && !(substr($2, 1, k - 1) in kind))
		fail("there is no message " substr($2, 1, k - 1))
	next
}
!n || $2 !~ /^[0-9]+$/ || (kind[name[n]] == "message") != (NF > 2) || ((n, $2) in taken) { fail("this is no row") }
{
	taken[n, $2] = 1
	i = n SUBSEP (++fields[n])
	field[i] = $1
	value[i] = $2
	type[i] = $3
	label[i] = $4
	of[i] = $5
	if (label[i] !~ /^(|repeated|map|oneof)$/ || (label[i] == "map" || label[i] == "oneof") != (of[i] != ""))
		fail("'" label[i] " " of[i] "' is no label")
}

# The codec recurses as deep as messages nest, so none may hold itself.
function check_depth(m, depth,    j, k) {
	if (depth > 16)
		fail(name[m] " holds itself")
	for (j = 1; kind[name[m]] == "message" && j <= fields[m]; j++)
		for (k = 1; k <= n; k++)
			if (name[k] == type[m, j])
				check_depth(k, depth + 1)
}

# The rows of tables in C.
function put_c(    m, j, i, t, rows, group, last, count) {
	print "/* Made from api/infer.tbl. */"
	print "static const struct message_field fields[] = {"
	for (m = 1; m <= n; m++) {
		first[m] = rows + 0
		last = ""
		group = 0
		for (j = 1; kind[name[m]] == "message" && j <= fields[m]; j++) {
			i = m SUBSEP j
			t = type[i]
			if (!is_scalar[t] && !(t in kind))
				fail("there is no type " t)
			if (label[i] == "oneof" && of[i] != last) {
				last = of[i]
				group++
			}
			printf "\t{ \"%s\", %d, TYPE_%s, LABEL_%s, TYPE_%s, %d, %d },\n", field[i], value[i],
				toupper(is_scalar[t] ? t : kind[t]),
				toupper(label[i] == "" ? "one" : label[i]),
				toupper(label[i] == "map" ? of[i] : "bool"),
				label[i] == "oneof" ? group : 0, is_scalar[t] ? 0 : number[t]
			rows++
		}
	}
	print "};\n\nstatic const struct message_type messages[] = {"
	for (m = 1; m <= n; m++)
		if (kind[name[m]] == "message")
			printf "\t{ \"%s\", %d, &fields[%d], %d },\n", name[m], plain[m], first[m], fields[m]
	print "};\n\nstatic const struct enum_value enum_values[] = {"
	for (m = 1; m <= n; m++)
		for (j = 1; kind[name[m]] == "enum" && j <= fields[m]; j++)
			printf "\t{ %d, \"%s\", %d },\n", number[name[m]], field[m, j], value[m, j]
	print "};"
}

function put_message(m, indent,    j, i, last, parent, declared) {
	print "\n" indent kind[name[m]] " " substr(name[m], match(name[m], /[^.]*$/)) " {"
	for (j = 1; j <= n; j++) {
		parent = name[j]
		if (sub(/\.[^.]*$/, "", parent) && parent == name[m])
			put_message(j, indent "\t")
	}
	last = ""
	for (j = 1; j <= fields[m]; j++) {
		i = m SUBSEP j
		if (last != "" && !(label[i] == "oneof" && of[i] == last)) {
			print indent "\t}"
			last = ""
		}
		if (label[i] == "oneof" && last == "")
			print indent "\toneof " (last = of[i]) " {"
		declared = type[i] == "" ? "" : type[i] " "
		if (label[i] == "map")
			declared = "map<" of[i] ", " type[i] "> "
		if (label[i] == "repeated")
			declared = "repeated " declared
		print indent "\t" (last != "" ? "\t" : "") declared field[i] " = " value[i] ";"
	}
	if (last != "")
		print indent "\t}"
	print indent "}"
}

END {
	if (failed)
		exit 1
	for (m = 1; m <= n; m++)
		check_depth(m, 1)
	if (out == "c") {
		put_c()
		exit 0
	}
	print "// Made from api/infer.tbl and api/route.tbl.\nsyntax = \"proto3\";\n\npackage " package ";"
	print "\nservice " service_name " {"
	for (i = 1; i <= rpcs; i++)
		print rpc[i]
	print "}"
	for (m = 1; m <= n; m++)
		if (in_package[m] == package && name[m] !~ /\./)
			put_message(m, "")
}
