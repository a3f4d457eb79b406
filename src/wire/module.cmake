# Tables of the protocols: api/status.tbl, api/route.tbl, api/infer.tbl.
add_custom_command(OUTPUT ${GEN}/status_rows.h
	COMMAND ${AWK} -F " *[|] *" "!/^(#|$)/ { printf \"\\t{ %s, { %d, %d, \\\"%s\\\" } },\\n\", $1, $4, $3, $2 }"
		${PROJECT_SOURCE_DIR}/api/status.tbl > ${GEN}/status_rows.h
	DEPENDS ${PROJECT_SOURCE_DIR}/api/status.tbl VERBATIM)
function(made_for_wire file script tables)
	list(TRANSFORM tables PREPEND ${PROJECT_SOURCE_DIR}/api/)
	add_custom_command(OUTPUT ${GEN}/${file}
		COMMAND ${AWK} ${ARGN} -f ${PROJECT_SOURCE_DIR}/api/${script} ${tables} > ${GEN}/${file}.new
		COMMAND mv ${GEN}/${file}.new ${GEN}/${file}
		DEPENDS ${PROJECT_SOURCE_DIR}/api/${script} ${tables} VERBATIM)
endfunction()
made_for_wire(route_names.h route.awk route.tbl -v out=h)
made_for_wire(route_rows.h route.awk route.tbl -v out=c)
made_for_wire(message_rows.h infer.awk infer.tbl -v out=c)
# For clients and tests: protoc reads them.
made_for_wire(inference.proto infer.awk "infer.tbl;route.tbl" -v out=proto -v package=inference)
made_for_wire(health.proto infer.awk "infer.tbl;route.tbl" -v out=proto -v package=grpc.health.v1)
set(WIRE_MADE status_rows.h route_names.h route_rows.h message_rows.h inference.proto health.proto)
list(TRANSFORM WIRE_MADE PREPEND ${GEN}/)
target_sources(wire PRIVATE ${WIRE_MADE})
add_custom_target(wire_tables DEPENDS ${WIRE_MADE})
add_dependencies(wire wire_tables)
target_link_libraries(wire PUBLIC -l:libjansson.a)
install(FILES ${GEN}/inference.proto ${GEN}/health.proto DESTINATION ${CMAKE_INSTALL_DATADIR}/weir)
