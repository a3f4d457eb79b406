/*
 * The saved form of a baseline: a header, then a record a series, little-endian, with a checksum.
 * It includes raised alarms, so a restart does not end them.
 */
#include "monitor/regress_series.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/crc.h"
#include "base/xmalloc.h"

#define SAVED_MAGIC   "WEIRBASE"
#define SAVED_VERSION 2u
#define SAVED_BYTES   offsetof(struct regress_series, current_n) /* of a series */

struct saved_header {
	char magic[8];
	uint32_t version, record_bytes, count, check; /* crc32c of the records */
};
static_assert(sizeof(struct saved_header) == 24, "on disk");
static_assert(SAVED_BYTES == 798, "on disk");

int saved_put(const struct regress_series *v, size_t n, void **ret_data, size_t *ret_bytes)
{
	const size_t bytes = sizeof(struct saved_header) + n * SAVED_BYTES;
	if (n > REGRESS_SERIES)
		return -EOVERFLOW;
	char *data = xmalloc(bytes);
	for (size_t i = 0; i < n; i++)
		memcpy(data + sizeof(struct saved_header) + i * SAVED_BYTES, &v[i], SAVED_BYTES);
	struct saved_header h = { .version = SAVED_VERSION,
		.record_bytes = SAVED_BYTES,
		.count = (uint32_t)n,
		.check = crc32c(data + sizeof h, bytes - sizeof h) };
	memcpy(h.magic, SAVED_MAGIC, sizeof h.magic);
	memcpy(data, &h, sizeof h);
	*ret_data = data;
	*ret_bytes = bytes;
	return 0;
}

void saved_get(const void *data, uint32_t i, struct regress_series *ret)
{
	*ret = (struct regress_series){ 0 };
	memcpy(ret, (const char *)data + sizeof(struct saved_header) + i * SAVED_BYTES,
		SAVED_BYTES);
}

/* A logarithm of ns. */
static bool is_time(float v)
{
	return v >= 0 && v <= 45;
}

static bool is_sound(const struct regress_series *s)
{
	bool sound = (s->what.kind == REGRESS_KERNEL || s->what.kind == REGRESS_REQUEST) &&
		     memchr(s->what.program, 0, sizeof s->what.program) &&
		     memchr(s->what.name, 0, sizeof s->what.name) && s->base_n <= REGRESS_BASE &&
		     s->base_at < REGRESS_BASE && (s->base_n == REGRESS_BASE || !s->base_at) &&
		     s->state <= REGRESS_SLOWER && s->crept <= 1 && s->day_n < REGRESS_DAY &&
		     s->day_sum >= 0 && s->day_sum <= 45.0 * REGRESS_DAY && is_time(s->expected) &&
		     is_time(s->expected_low) && is_time(s->anchor) && is_time(s->before) &&
		     is_time(s->after) && s->swing >= 0 && s->swing <= 45 &&
		     fabsf(s->effect) <= 45 && s->p >= 0 && s->p <= 1 && s->level >= 0 &&
		     s->level <= 1;
	for (uint32_t i = 0; sound && i < s->base_n; i++)
		sound = is_time(s->base[i]);
	return sound;
}

int saved_check(const void *data, size_t bytes, uint32_t *ret_count, struct error *err)
{
	struct saved_header h;
	struct regress_series s;
	if (bytes < sizeof h || memcmp(data, SAVED_MAGIC, sizeof h.magic) != 0)
		return error_set(err, -EINVAL, "it is no baseline of weir monitor");
	memcpy(&h, data, sizeof h);
	if (h.version != SAVED_VERSION || h.record_bytes != SAVED_BYTES)
		return error_set(err, -EINVAL,
			"it is a baseline of another version (%u, and this one reads %u)",
			h.version, SAVED_VERSION);
	if (h.count > REGRESS_SERIES || bytes - sizeof h != h.count * SAVED_BYTES)
		return error_set(err, -EINVAL, "it is damaged: its length is wrong");
	if (crc32c((const char *)data + sizeof h, bytes - sizeof h) != h.check)
		return error_set(err, -EINVAL, "it is damaged: its checksum is wrong");
	for (uint32_t i = 0; i < h.count; i++) {
		saved_get(data, i, &s);
		if (!is_sound(&s))
			return error_set(
				err, -EINVAL, "it is damaged: series %u makes no sense", i);
	}
	*ret_count = h.count;
	return 0;
}
