# libweirapi.so: what programs link to that talk to the scheduler.
target_include_directories(client PUBLIC ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(client PUBLIC ${CMAKE_DL_LIBS})

add_library(weirapi SHARED $<TARGET_OBJECTS:client>)
target_link_libraries(weirapi PRIVATE record share event base ${CMAKE_DL_LIBS})
target_link_options(weirapi PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/client/weirapi.map
	-Wl,-z,now -Wl,-z,relro)
set_target_properties(weirapi PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 1
	LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
	LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/client/weirapi.map)
target_include_directories(weirapi INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
	$<INSTALL_INTERFACE:include>)

file(RELATIVE_PATH PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" PC_PREFIX "${PC_PREFIX}")
configure_file(client/weirapi.pc.in ${GEN}/weirapi.pc @ONLY)
install(TARGETS weirapi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${GEN}/weirapi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
