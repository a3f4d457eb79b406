# Everything generated from api/ is made with this. make_of_tables(FILE WHAT): one output of
# api/gen.awk or api/lists.awk
function(make_of_tables file what)
	set(TABLES types.tbl enums.tbl cuda.tbl cudart.tbl)
	list(TRANSFORM TABLES PREPEND ${CMAKE_SOURCE_DIR}/api/)
	set(SCRIPTS ${CMAKE_SOURCE_DIR}/api/tables.awk ${CMAKE_SOURCE_DIR}/api/gen.awk ${CMAKE_SOURCE_DIR}/api/lists.awk)
	list(TRANSFORM SCRIPTS PREPEND "-f;" OUTPUT_VARIABLE SCRIPT_OPTIONS)
	add_custom_command(OUTPUT ${GEN}/${file}
		COMMAND ${AWK} -v want=${what} -v sorted=${GEN}/${file}.sorted
			${SCRIPT_OPTIONS} ${TABLES} > ${GEN}/${file}.new
		COMMAND mv ${GEN}/${file}.new ${GEN}/${file}
		DEPENDS ${SCRIPTS} ${TABLES} VERBATIM)
endfunction()

# make_of_libraries(FILE WHAT): one output of api/library.awk
function(make_of_libraries file what)
	set(LIBRARY ${CMAKE_SOURCE_DIR}/api/library)
	add_custom_command(OUTPUT ${GEN}/${file}
		COMMAND ${AWK} -v want=${what} -f ${LIBRARY}.awk ${LIBRARY}.tbl > ${GEN}/${file}.new
		COMMAND mv ${GEN}/${file}.new ${GEN}/${file}
		DEPENDS ${LIBRARY}.awk ${LIBRARY}.tbl VERBATIM)
endfunction()

make_of_tables(fn_ids.h ids)
make_of_tables(named_functions.h above)
make_of_tables(schema_text.c schema)
make_of_tables(enum_names.c enums)
make_of_tables(class_names.c classes)
make_of_libraries(library_ids.h ids)
add_custom_target(tables DEPENDS ${GEN}/fn_ids.h ${GEN}/library_ids.h ${GEN}/named_functions.h)

target_sources(event PRIVATE ${GEN}/schema_text.c ${GEN}/enum_names.c ${GEN}/class_names.c)
target_include_directories(event PUBLIC ${GEN} ${CMAKE_SOURCE_DIR}/api)
add_dependencies(event tables)

make_of_tables(weir-calls.7 manual)
add_custom_target(calls-page ALL DEPENDS ${GEN}/weir-calls.7)
install(FILES ${GEN}/weir-calls.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
