# The rows of /metrics: api/serve_metric.tbl.
add_custom_command(OUTPUT ${GEN}/serve_metrics.h
	COMMAND ${AWK} -f ${PROJECT_SOURCE_DIR}/api/serve_metric.awk ${PROJECT_SOURCE_DIR}/api/serve_metric.tbl > ${GEN}/serve_metrics.h.new
	COMMAND mv ${GEN}/serve_metrics.h.new ${GEN}/serve_metrics.h
	DEPENDS ${PROJECT_SOURCE_DIR}/api/serve_metric.awk ${PROJECT_SOURCE_DIR}/api/serve_metric.tbl VERBATIM)
target_sources(serve PRIVATE ${GEN}/serve_metrics.h)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
target_link_libraries(serve PRIVATE -l:libnghttp2.a PkgConfig::ZLIB Threads::Threads rt)
target_compile_definitions(serve PRIVATE WEIR_VERSION="${PROJECT_VERSION}")
