# The rules' texts, with a check that each has a function: api/hint.tbl.
foreach(made hint_table.c hint_rules.h)
	get_filename_component(kind ${made} EXT)
	string(SUBSTRING ${kind} 1 1 kind)
	add_custom_command(OUTPUT ${GEN}/${made}
		COMMAND ${AWK} -v out=${kind} -f ${PROJECT_SOURCE_DIR}/api/hint.awk
			${PROJECT_SOURCE_DIR}/api/hint.tbl > ${GEN}/${made}.new
		COMMAND mv ${GEN}/${made}.new ${GEN}/${made}
		DEPENDS ${PROJECT_SOURCE_DIR}/api/hint.awk ${PROJECT_SOURCE_DIR}/api/hint.tbl VERBATIM)
	target_sources(hint PRIVATE ${GEN}/${made})
endforeach()
target_link_libraries(hint PRIVATE m)
