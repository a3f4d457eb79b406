# Compiles for MACHINE (x86_64, aarch64) against the folder SYSROOT, which sysroot.sh has made.
# The archives there are all static but the C library's.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SYSROOT MACHINE)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${MACHINE})
set(CMAKE_SYSROOT ${SYSROOT})
set(CMAKE_C_COMPILER ${MACHINE}-linux-gnu-gcc)
set(CMAKE_ASM_COMPILER ${MACHINE}-linux-gnu-gcc)
# A compiler finds the libraries of its own system before those of a sysroot, except by -B.  The
# products say nothing of the folders where they were built.
set(LIBRARIES ${SYSROOT}/usr/lib/${MACHINE}-linux-gnu)
get_filename_component(SOURCES ${CMAKE_CURRENT_LIST_DIR}/../.. REALPATH)
set(CMAKE_C_FLAGS_INIT "-B${LIBRARIES} -ffile-prefix-map=${SOURCES}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${LIBRARIES}/pkgconfig)
