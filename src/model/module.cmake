target_link_libraries(model PRIVATE Threads::Threads m)

# The costs of operators, by two tables.
make_of_libraries(library_rules.tbl rules)
add_custom_command(OUTPUT ${GEN}/operator_rules.h
	COMMAND ${AWK} -f ${PROJECT_SOURCE_DIR}/api/operator.awk
		${PROJECT_SOURCE_DIR}/api/operator.tbl ${GEN}/library_rules.tbl > ${GEN}/operator_rules.h.new
	COMMAND mv ${GEN}/operator_rules.h.new ${GEN}/operator_rules.h
	DEPENDS ${PROJECT_SOURCE_DIR}/api/operator.awk ${PROJECT_SOURCE_DIR}/api/operator.tbl
		${GEN}/library_rules.tbl VERBATIM)
target_sources(model PRIVATE ${GEN}/operator_rules.h)
target_include_directories(model PRIVATE ${GEN})
