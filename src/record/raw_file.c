/* Maps parts of a trace file and tells how long it is. */
#include "record/raw_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/sys.h"

uint64_t file_bytes(long fd)
{
	struct stat st;
	return sys(fstat, fd, &st) ? 0 : (uint64_t)st.st_size;
}

long file_map(long fd, uint64_t offset, uint64_t bytes)
{
	return sys(
		mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
}
