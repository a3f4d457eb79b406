# viewer/ as two strings: what stands before a page's data and what stands behind.
set(VIEWER ${PROJECT_SOURCE_DIR}/viewer)
set(VIEWER_SCRIPTS base.js lanes.js bands.js timeline.js hands.js flame.js charts.js tables.js memory.js roofline.js compare.js page.js)
list(TRANSFORM VIEWER_SCRIPTS PREPEND ${VIEWER}/)
list(INSERT VIEWER_SCRIPTS 1 ${GEN}/palette.js)
add_custom_command(OUTPUT ${GEN}/viewer.c
	COMMAND cat ${VIEWER_SCRIPTS} > ${GEN}/viewer.js
	COMMAND ${CMAKE_COMMAND} -E sha256sum ${GEN}/viewer.js ${VIEWER}/page.css > ${GEN}/viewer.sums
	COMMAND ${AWK} -v script=${GEN}/viewer.js -v style=${VIEWER}/page.css -v sums=${GEN}/viewer.sums
		-f ${VIEWER}/embed.awk ${VIEWER}/page.html > ${GEN}/viewer.c
	DEPENDS ${VIEWER_SCRIPTS} ${VIEWER}/page.css ${VIEWER}/page.html ${VIEWER}/embed.awk VERBATIM)
target_sources(page PRIVATE ${GEN}/viewer.c)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
target_link_libraries(page PRIVATE PkgConfig::ZLIB)
