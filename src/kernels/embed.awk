# Prints the device sources and the built-in PTX as C: embed.awk FILE....  The text of NAME.ptx is kernel_builtin.
FNR == 1 {
	close_text()
	name = FILENAME
	sub(/.*\//, "", name)
	if (name ~ /\.ptx$/)
		builtin = "const char kernel_builtin[] ="
	else
		text = text "\t{ \"" name "\",\n"
}
{
	line = $0
	gsub(/[\\"]/, "\\\\&", line)
	if (name ~ /\.ptx$/)
		builtin = builtin "\n\t\"" line "\\n\""
	else
		text = text "\t\t\"" line "\\n\"\n"
}
END {
	close_text()
	print "#include <assert.h>\n\n#include \"kernels/sources.h\"\n"
	print "static_assert(" sources " <= KERNEL_SOURCES_MOST, \"nvrtc.c has room for them\");\n"
	print "const struct kernel_source kernel_sources[] = {\n" text "\t{ 0 }\n};\n\n" builtin ";"
}
function close_text() {
	if (name != "" && name !~ /\.ptx$/) {
		text = text "\t},\n"
		sources++
	}
}
