target_link_libraries(batch PRIVATE m)
