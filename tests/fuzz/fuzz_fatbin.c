/*
 * Fuzzes the image parser of the simulated driver: any bytes, as a device of 7.5, 9.0 or
 * 10.0 would see them.  With libFuzzer it searches; linked with replay.c it runs over a
 * corpus, as a plain test.
 */
#include "image/image.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int capabilities[] = { 75, 90, 100 };
	struct image image;

	for (int i = 0; i < 3; i++)
		if (image_parse(data, size, capabilities[i], &image) == 0)
			image_fini(&image);
	return 0;
}
