/* Copies from memory that is not pinned go through the driver's own buffers.  The twin's is pinned.
 */
#include "problem.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 64 << 20 };

int main(int argc, char **argv)
{
	problem_open(argc, argv);
	void *host = NULL;
	device_pointer data;
	CHECK(alloc(&data, BYTES));
	if (fixed)
		CHECK(alloc_host(&host, BYTES));
	else
		host = malloc(BYTES);
	if (!host)
		return 1;
	memset(host, 1, BYTES);
	CHECK(copy_in(data, host, BYTES, stream));
	problem_begin();
	for (int i = 0; i < 30; i++)
		CHECK(copy_in(data, host, BYTES, stream));
	problem_end();
	return 0;
}
