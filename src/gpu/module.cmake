target_include_directories(gpu PUBLIC ${PROJECT_SOURCE_DIR}/api)
target_link_libraries(gpu PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
