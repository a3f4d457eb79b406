# The fields of model configurations: api/config.tbl.
add_custom_command(OUTPUT ${GEN}/config_fields.c
	COMMAND ${AWK} -f ${PROJECT_SOURCE_DIR}/api/config.awk ${PROJECT_SOURCE_DIR}/api/config.tbl
		> ${GEN}/config_fields.c.new
	COMMAND mv ${GEN}/config_fields.c.new ${GEN}/config_fields.c
	DEPENDS ${PROJECT_SOURCE_DIR}/api/config.awk ${PROJECT_SOURCE_DIR}/api/config.tbl VERBATIM)
target_sources(store PRIVATE ${GEN}/config_fields.c)
# Trees of configurations, and what requests say, are jansson's.
target_link_libraries(store PUBLIC -l:libjansson.a)
