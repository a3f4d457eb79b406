add_custom_command(OUTPUT ${GEN}/gpu_table.c
	COMMAND ${AWK} -f ${PROJECT_SOURCE_DIR}/api/gpu.awk ${PROJECT_SOURCE_DIR}/api/gpu.tbl
		> ${GEN}/gpu_table.c.new
	COMMAND mv ${GEN}/gpu_table.c.new ${GEN}/gpu_table.c
	DEPENDS ${PROJECT_SOURCE_DIR}/api/gpu.awk ${PROJECT_SOURCE_DIR}/api/gpu.tbl VERBATIM)

add_custom_command(OUTPUT ${GEN}/predict_family.h
	COMMAND ${AWK} -f ${PROJECT_SOURCE_DIR}/api/family.awk ${PROJECT_SOURCE_DIR}/api/family.tbl
		> ${GEN}/predict_family.h.new
	COMMAND mv ${GEN}/predict_family.h.new ${GEN}/predict_family.h
	DEPENDS ${PROJECT_SOURCE_DIR}/api/family.awk ${PROJECT_SOURCE_DIR}/api/family.tbl VERBATIM)

target_sources(predict PRIVATE ${GEN}/gpu_table.c ${GEN}/predict_family.h)
target_include_directories(predict PRIVATE ${GEN})
