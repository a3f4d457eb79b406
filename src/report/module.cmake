# Calls that fail by design: api/probe.tbl.
add_custom_command(OUTPUT ${GEN}/probe_rows.h
	COMMAND ${AWK} -F " [|] " "!/^(#|$)/ { printf \"\\t{ \\\"%s\\\", \\\"%s\\\", \\\"%s\\\" },\\n\", $1, $2, $3 }"
		${PROJECT_SOURCE_DIR}/api/probe.tbl > ${GEN}/probe_rows.h
	DEPENDS ${PROJECT_SOURCE_DIR}/api/probe.tbl VERBATIM)
target_sources(report PRIVATE ${GEN}/probe_rows.h)
target_include_directories(report PRIVATE ${GEN})
