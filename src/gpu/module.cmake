target_link_libraries(gpu PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
