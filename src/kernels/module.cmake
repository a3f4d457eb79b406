# libweirkernels.so: CUDA kernels by plans.  The device sources and the PTX of the plain kernels are text in it.
set(sources ${CMAKE_CURRENT_SOURCE_DIR}/kernels)
set(embedded element.cuh rows.cuh gemm.cuh conv.cuh sm90.cuh rows.cu rows_held.cu rows_ring.cu gemm.cu gemm_few.cu gemm_split.cu gemm_sm80.cu gemm_sm90.cu
	conv.cu conv_sm90.cu builtin.ptx)
list(TRANSFORM embedded PREPEND ${sources}/)
add_custom_command(OUTPUT ${GEN}/kernel_sources.c
	COMMAND ${AWK} -f ${sources}/embed.awk ${embedded} > ${GEN}/kernel_sources.c
	DEPENDS ${sources}/embed.awk ${embedded} VERBATIM)
target_sources(kernels PRIVATE ${GEN}/kernel_sources.c)
target_include_directories(kernels PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/api)
target_link_libraries(kernels PUBLIC ${CMAKE_DL_LIBS} Threads::Threads m)

add_library(weirkernels SHARED $<TARGET_OBJECTS:kernels>)
target_link_libraries(weirkernels PRIVATE predict base ${CMAKE_DL_LIBS} Threads::Threads m)
target_link_options(weirkernels PRIVATE -Wl,--version-script=${sources}/weirkernels.map -Wl,-z,now -Wl,-z,relro)
set_target_properties(weirkernels PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 1
	LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINK_DEPENDS ${sources}/weirkernels.map)
configure_file(kernels/weirkernels.pc.in ${GEN}/weirkernels.pc @ONLY)
install(TARGETS weirkernels LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${GEN}/weirkernels.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
