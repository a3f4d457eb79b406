target_link_libraries(whatif PRIVATE m)
