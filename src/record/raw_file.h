/* A trace file as bytes, without libc. Any thread may ask. */
#pragma once

#include <stdint.h>

uint64_t file_bytes(long fd); /* 0: not known */

/* Maps a part of it, shared and populated; an address or -errno. */
long file_map(long fd, uint64_t offset, uint64_t bytes);
