# The metrics of fail conditions: api/metric.tbl.
add_custom_command(OUTPUT ${GEN}/diff_metrics.h
	COMMAND ${AWK} -v out=metrics -f ${PROJECT_SOURCE_DIR}/api/cli.awk
		${PROJECT_SOURCE_DIR}/api/metric.tbl > ${GEN}/diff_metrics.h.new
	COMMAND mv ${GEN}/diff_metrics.h.new ${GEN}/diff_metrics.h
	DEPENDS ${PROJECT_SOURCE_DIR}/api/cli.awk ${PROJECT_SOURCE_DIR}/api/metric.tbl VERBATIM)
target_sources(diff PRIVATE ${GEN}/diff_metrics.h)
target_include_directories(diff PRIVATE ${GEN})
