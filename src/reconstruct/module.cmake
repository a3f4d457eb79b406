target_link_libraries(reconstruct PRIVATE m)
