# Turns palette.tbl into what draws with it:
#
#	awk -v out=h -f palette.awk palette.tbl		colours on white, as C
#	awk -v out=js -f palette.awk palette.tbl	the numbers, for viewer/base.js
#
# base.js has the same arithmetic, since the page also has a dark side.

function fail(text) { print FILENAME ":" FNR ": " text > "/dev/stderr"; failed = 1; exit 1 }

function channel(n, hue, saturation, light,    k, least)
{
	k = n + hue / 30
	k -= 12 * int(k / 12)
	least = k - 3 < 9 - k ? k - 3 : 9 - k
	least = least > 1 ? 1 : least < -1 ? -1 : least
	return light - saturation * (light < 1 - light ? light : 1 - light) * least
}

function linear(v) { return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ^ 2.4 }

function luminance(h, s, l)
{
	return 0.2126 * linear(channel(0, h, s, l)) + 0.7152 * linear(channel(8, h, s, l)) + \
		0.0722 * linear(channel(4, h, s, l))
}

# The fill that is as light as a grey of `level` percent.
function fill(hue, saturation, level,    low, high, middle, i)
{
	high = 1
	for (i = 0; i < 12; i++) {
		middle = (low + high) / 2
		if (luminance(hue, saturation / 100, middle) < (level / 100) ^ 2.2)
			low = middle
		else
			high = middle
	}
	return sprintf("#%02x%02x%02x", 255 * channel(0, hue, saturation / 100, high) + 0.5, \
		255 * channel(8, hue, saturation / 100, high) + 0.5, \
		255 * channel(4, hue, saturation / 100, high) + 0.5)
}

function c_kind(    i)
{
	printf "static const char *const palette_%s[PALETTE_SHADES] = {", $2
	for (i = 0; i < shades; i++)
		printf "%s\"%s\"", i ? ", " : " ", \
			fill($3 + (i / (shades - 1) - 0.5) * 12, $4, $5 + 16 * i / (shades - 1))
	print " };"
}

BEGIN {
	shades = 8
	if (out == "h") {
		print "/* Made of palette.tbl by palette.awk. */"
		print "#pragma once\n"
		print "#define PALETTE_SHADES " shades
	}
}

/^#/ || NF == 0 { next }

$1 == "kind" && NF == 5 {
	if (out == "h")
		c_kind()
	kinds = kinds "\t" $2 ": [" $3 ", " $4 ", " $5 "],\n"
	next
}

($1 == "kernel" || $1 == "layer") && NF == 4 {
	list[$1] = list[$1] "\t[" $2 ", " $3 ", " $4 "],\n"
	fills = fills ($1 == "kernel" ? "\t\"" fill($2, $3, $4) "\",\n" : "")
	n[$1]++
	next
}

$1 == "line" && NF == 3 {
	if (out == "h")
		print "#define LINE_" toupper($2) " \"#" $3 "\""
	next
}

{ fail("no colour: " $0) }

END {
	if (failed)
		exit 1
	if (out == "h") {
		print "#define PALETTE_KERNELS " n["kernel"]
		print "static const char *const palette_kernels[PALETTE_KERNELS] = {\n" fills "};"
	} else {
		print "const SHADES = " shades ";\nconst hues = {\n" kinds "};"
		print "const kernelFills = [\n" list["kernel"] "];"
		print "const layerFills = [\n" list["layer"] "];"
	}
}
