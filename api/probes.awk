# The calls of probe.tbl by number, as rows of C: { function or FN_NONE for any, error }.
#	awk -f probes.awk fn_ids.h enums.tbl probe.tbl

FILENAME ~ /fn_ids\.h$/ {
	if ($1 ~ /^FN_cu/) function_[++count] = substr($1, 4)
	next
}
FILENAME ~ /enums\.tbl$/ {
	if ($1 ~ /^(CUresult|cudaError)$/) code[$3] = $2
	next
}
/^(#|$)/ { next }
{
	split($0, field, / [|] /)
	if (!(field[2] in code)) {
		print "probe.tbl: " field[2] " is no error" > "/dev/stderr"
		exit 1
	}
	if (field[1] == "*") printf "\t{ FN_NONE, %d },\n", code[field[2]]
	for (i = 1; i <= count; i++)
		if (function_[i] == field[1] || index(function_[i], field[1] "_") == 1)
			printf "\t{ FN_%s, %d },\n", function_[i], code[field[2]]
}
