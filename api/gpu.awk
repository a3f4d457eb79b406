# Turns gpu.tbl into the array of src/predict/gpu.h: awk -f gpu.awk gpu.tbl

BEGIN {
	FS = " *[|] *"
	units = split("FP64 FP32 TF32 FP16 FP8", unit, " ")
	print "/* Made from api/gpu.tbl. */"
	print "#include \"predict/gpu.h\"\n"
	print "const struct gpu gpus[] = {"
}

function fail(text) { print FILENAME ":" FNR ": " text > "/dev/stderr"; failed = 1; exit 1 }

function number(i) {
	if ($i !~ /^[0-9]+(\.[0-9]+)?$/)
		fail("'" $i "' is not a number")
	return $i
}

# The number behind the slash of field i, which it loses; 0: nothing does.
function behind(i,    part) {
	split($i, part, "/")
	$i = part[1]
	if (part[2] !~ /^([0-9]+(\.[0-9]+)?)?$/)
		fail("'" part[2] "' is not a number")
	return part[2] + 0
}

/^#/ || !NF { next }
{
	if (NF != 13)
		fail("13 fields expected, " NF " found")
	if (split($2, cc, ".") != 2 || number(2) == "")
		fail("'" $2 "' is not a compute capability")
	l2_bytes_per_clock = behind(6)
	fp64_products = behind(7)
	has = peaks = ""
	for (i = 1; i <= units; i++) {
		if ($(6 + i) == "-")
			continue
		has = has (has == "" ? "" : " | ") "1u << GPU_" unit[i]
		peaks = peaks sprintf(" [GPU_%s] = %.9g,", unit[i], number(6 + i))
	}
	printf "\t{ .name = \"%s\", .cc = %d, .sms = %d, .boost_mhz = %d,\n", $1, cc[1] * 10 + cc[2],
		number(3), number(4)
	printf "\t\t.dram_gb_per_s = %.9g, .l2_bytes = %dull << 20,\n", number(5), number(6)
	printf "\t\t.has = %s,\n\t\t.tflops = {%s },\n", has, peaks
	if (fp64_products)
		printf "\t\t.fp64_products_tflops = %.9g,\n", fp64_products
	if (l2_bytes_per_clock)
		printf "\t\t.l2_gb_per_s = %.9g,\n", l2_bytes_per_clock * number(4) / 1000
	gsub(/["\\]/, "\\\\&", $12)
	printf "\t\t.source = \"%s\"", $12
	if ($13 != "-") {
		figures = split($13, reached, " ")
		if (figures != units + 1 && figures != units + 2)
			fail("six or seven figures expected of what was reached")
		printf ",\n\t\t.reached_gb_per_s = %.9g, .reached_tflops = {", reached[1]
		for (i = 1; i <= units; i++)
			printf " [GPU_%s] = %.9g,", unit[i], reached[i + 1]
		printf " }"
		if (figures > units + 1)
			printf ",\n\t\t.reached_l2_gb_per_s = %.9g", reached[units + 2]
	}
	print " },"
}
END {
	if (failed)
		exit 1
	print "};"
	print "const size_t gpu_count = sizeof(gpus) / sizeof(gpus[0]);"
}
