/*
 * Fuzzes the file that weir monitor keeps its baseline in.  A file that is taken can be used and
 * kept again, and is then the same; the checksum is made right, so that what is behind it is
 * reached.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "monitor/regress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADER 24u
#define NOW    1000000000u

static void use(struct regress *r)
{
	for (uint32_t i = 0; i < regress_count(r); i++) {
		const uint64_t key = regress_at(r, i)->key;
		for (uint64_t k = 1; k < 100; k++)
			regress_add(r, key, 1, NOW + k * REGRESS_WINDOW_NS, k * 1000);
		regress_accept(r, key);
	}
}

static void compare(struct regress *r, const void *copy, size_t size)
{
	void *saved, *again;
	size_t bytes, more;
	struct regress *other = regress_new(100, REGRESS_WINDOW_NS, 2);
	if (!other || regress_save(r, &saved, &bytes))
		abort();
	if (bytes > size || regress_load(other, saved, bytes, NOW, NULL) ||
		regress_save(other, &again, &more) || more != bytes ||
		memcmp(saved, again, bytes) != 0)
		abort();
	free(saved);
	free(again);
	regress_free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	struct regress *r = regress_new(100, REGRESS_WINDOW_NS, 1);
	if (!copy || !r)
		abort();
	memcpy(copy, data, size);
	if (size >= HEADER) {
		const uint32_t check = crc32c(copy + HEADER, size - HEADER);
		memcpy(copy + HEADER - 4, &check, 4);
	}
	if (!regress_load(r, copy, size, NOW, NULL)) {
		compare(r, copy, size);
		use(r);
	}
	regress_free(r);
	free(copy);
	return 0;
}
