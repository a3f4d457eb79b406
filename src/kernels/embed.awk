# Prints the device sources and, behind them, the PTX kernel_builtin as C: embed.awk FILE... NAME.ptx.
BEGIN { print "#include <assert.h>\n\n#include \"kernels/sources.h\"\n\nconst struct kernel_source kernel_sources[] = {" }
FNR == 1 {
	close_source()
	name = FILENAME
	sub(/.*\//, "", name)
	if (name ~ /\.ptx$/)
		print "\t{ 0 }\n};\n\nconst char kernel_builtin[] ="
	else
		print "\t{ \"" name "\","
}
{
	gsub(/[\\"]/, "\\\\&")
	print "\t\t\"" $0 "\\n\""
}
END { print "\t\t\"\";\n\nstatic_assert(" sources " <= KERNEL_SOURCES_MOST, \"nvrtc.c has room for them\");" }
function close_source() {
	if (name != "") {
		print "\t},"
		sources++
	}
}
