/* A trace file as bytes, without libc. Any thread may ask. */
#ifndef WEIR_RECORD_RAW_FILE_H
#define WEIR_RECORD_RAW_FILE_H

#include <stdint.h>

uint64_t file_bytes(long fd); /* 0: not known */

/* Maps a part of it, shared and populated; an address or -errno. */
long file_map(long fd, uint64_t offset, uint64_t bytes);

#endif
