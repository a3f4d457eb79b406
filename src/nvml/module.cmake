target_link_libraries(nvml PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
