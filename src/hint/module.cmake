# What each rule says: api/hint.tbl.
add_custom_command(OUTPUT ${GEN}/hint_table.c
	COMMAND ${AWK} -v out=c -f ${PROJECT_SOURCE_DIR}/api/hint.awk
		${PROJECT_SOURCE_DIR}/api/hint.tbl > ${GEN}/hint_table.c.new
	COMMAND ${CMAKE_COMMAND} -E rename ${GEN}/hint_table.c.new ${GEN}/hint_table.c
	DEPENDS ${PROJECT_SOURCE_DIR}/api/hint.awk ${PROJECT_SOURCE_DIR}/api/hint.tbl VERBATIM)
target_sources(hint PRIVATE ${GEN}/hint_table.c)
target_link_libraries(hint PRIVATE m)
