target_link_libraries(train PRIVATE m ${CMAKE_DL_LIBS})
