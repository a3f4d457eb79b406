# ONNX Runtime's functions by their slots: api/ort.tbl.  The library is loaded when a model needs it.
add_custom_command(OUTPUT ${GEN}/ort_functions.h
	COMMAND ${AWK} -f ${PROJECT_SOURCE_DIR}/api/ort.awk ${PROJECT_SOURCE_DIR}/api/ort.tbl > ${GEN}/ort_functions.h.new
	COMMAND mv ${GEN}/ort_functions.h.new ${GEN}/ort_functions.h
	DEPENDS ${PROJECT_SOURCE_DIR}/api/ort.awk ${PROJECT_SOURCE_DIR}/api/ort.tbl VERBATIM)
target_sources(engine PRIVATE ${GEN}/ort_functions.h)
target_include_directories(engine PRIVATE ${GEN})
target_link_libraries(engine PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
# `make onnxruntime` has put these beside the program.
install(FILES ${WEIR_LIB}/libonnxruntime.so.1 ${WEIR_LIB}/LICENSE.onnxruntime DESTINATION lib/weir OPTIONAL)
# A synthetic model's file is JSON.
include(CheckIncludeFile)
check_include_file(jansson.h WEIR_HAS_JANSSON)
if(WEIR_HAS_JANSSON)
	target_link_libraries(engine PRIVATE -l:libjansson.a m)
	target_compile_definitions(engine PRIVATE WEIR_JANSSON)
else()
	message(STATUS "jansson is not here (Debian: libjansson-dev): there are no synthetic models")
	set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/engine/synthetic.c
		${CMAKE_CURRENT_SOURCE_DIR}/engine/kernel_list.c ${CMAKE_CURRENT_SOURCE_DIR}/engine/shared_engine.c
		${CMAKE_CURRENT_SOURCE_DIR}/engine/library_step.c
		${CMAKE_CURRENT_SOURCE_DIR}/engine/model_json.c PROPERTIES HEADER_FILE_ONLY ON)
endif()
# An exception for a model passes a function of this file.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/engine/torch_shim.c PROPERTIES COMPILE_OPTIONS -fexceptions)
# Models of PyTorch find these in the program (torch_shim.c).
target_link_options(engine INTERFACE LINKER:--dynamic-list=${CMAKE_CURRENT_SOURCE_DIR}/engine/torch_shim.list)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
target_link_libraries(engine PRIVATE PkgConfig::ZLIB)
