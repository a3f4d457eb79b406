# The colours of pictures in C and, for the page, in JavaScript: api/palette.tbl.
foreach(made palette.h palette.js)
	get_filename_component(kind ${made} EXT)
	string(SUBSTRING ${kind} 1 -1 kind)
	add_custom_command(OUTPUT ${GEN}/${made}
		COMMAND ${AWK} -v out=${kind} -f ${PROJECT_SOURCE_DIR}/api/palette.awk
			${PROJECT_SOURCE_DIR}/api/palette.tbl > ${GEN}/${made}.new
		COMMAND mv ${GEN}/${made}.new ${GEN}/${made}
		DEPENDS ${PROJECT_SOURCE_DIR}/api/palette.awk ${PROJECT_SOURCE_DIR}/api/palette.tbl VERBATIM)
endforeach()
add_custom_target(palette DEPENDS ${GEN}/palette.h ${GEN}/palette.js)
target_include_directories(base PUBLIC ${GEN})
add_dependencies(base palette)
