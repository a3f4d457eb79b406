# Stacks are unwound with elfutils: its headers when it is built, its library when it runs.
include(CheckIncludeFile)
check_include_file(elfutils/libdwfl.h WEIR_HAS_LIBDW)
if(WEIR_HAS_LIBDW)
	target_compile_definitions(stack PRIVATE WEIR_LIBDW)
else()
	message(STATUS "elfutils' headers are not here (Debian: libdw-dev): weir record --stacks shows Python's frames alone")
	set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/stack/libdw.c ${CMAKE_CURRENT_SOURCE_DIR}/stack/lines.c
		PROPERTIES HEADER_FILE_ONLY ON)
endif()
target_link_libraries(stack PRIVATE ${CMAKE_DL_LIBS})
