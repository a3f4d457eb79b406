/*
 * The saved form of a baseline: a header, then a record a series, little-endian, with a checksum.
 * It includes raised alarms, so a restart does not end them.
 */
#include "monitor/regress_series.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/crc.h"
#include "base/expect.h"
#include "base/xmalloc.h"

#define SAVED_MAGIC   "WEIRBASE"
#define SAVED_VERSION 1u

struct saved_header {
	char magic[8];
	uint32_t version, record_bytes, count, check; /* crc32c of the records */
};
static_assert(sizeof(struct saved_header) == 24, "on disk");

struct saved {
	struct regress_what what;
	uint16_t base_n, base_at;
	uint8_t state, crept;
	uint16_t reserved;
	uint32_t day_n, reserved_word;
	double day_sum;
	float expected, expected_low, anchor, swing, before, after, effect;
	uint32_t reserved_last;
	double p, level;
	float base[REGRESS_BASE];
};
static_assert(sizeof(struct saved) == 808, "on disk");

static void put(const struct regress_series *s, struct saved *to)
{
	*to = (struct saved){ .what = s->what,
		.base_n = s->base_n,
		.base_at = s->base_at,
		.state = s->state,
		.crept = s->crept,
		.day_n = s->day_n,
		.day_sum = s->day_sum,
		.expected = s->expected,
		.expected_low = s->expected_low,
		.anchor = s->anchor,
		.swing = s->swing,
		.before = s->before,
		.after = s->after,
		.effect = s->effect,
		.p = s->p,
		.level = s->level };
	memcpy(to->base, s->base, sizeof to->base);
}

int saved_put(const struct regress_series *v, size_t n, void **ret_data, size_t *ret_bytes)
{
	const size_t bytes = sizeof(struct saved_header) + n * sizeof(struct saved);
	if (n > REGRESS_SERIES)
		return -EOVERFLOW;
	char *data = xmalloc(bytes);
	for (size_t i = 0; i < n; i++) {
		struct saved s;
		put(&v[i], &s);
		memcpy(data + sizeof(struct saved_header) + i * sizeof s, &s, sizeof s);
	}
	struct saved_header h = { .version = SAVED_VERSION,
		.record_bytes = sizeof(struct saved),
		.count = (uint32_t)n,
		.check = crc32c(data + sizeof h, bytes - sizeof h) };
	memcpy(h.magic, SAVED_MAGIC, sizeof h.magic);
	memcpy(data, &h, sizeof h);
	*ret_data = data;
	*ret_bytes = bytes;
	return 0;
}

static void get(const void *data, uint32_t i, struct saved *ret)
{
	memcpy(ret, (const char *)data + sizeof(struct saved_header) + (size_t)i * sizeof *ret,
		sizeof *ret);
}

/* A logarithm of ns. */
static bool is_time(float v)
{
	return v >= 0 && v <= 45;
}

static bool is_sound(const struct saved *s)
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
	struct saved s;
	if (bytes < sizeof h || memcmp(data, SAVED_MAGIC, sizeof h.magic) != 0)
		return error_set(err, -EINVAL, "it is no baseline of weir monitor");
	memcpy(&h, data, sizeof h);
	if (h.version != SAVED_VERSION || h.record_bytes != sizeof s)
		return error_set(err, -EINVAL,
			"it is a baseline of another version (%u, and this one reads %u)",
			h.version, SAVED_VERSION);
	if (h.count > REGRESS_SERIES || bytes - sizeof h != (size_t)h.count * sizeof s)
		return error_set(err, -EINVAL, "it is damaged: its length is wrong");
	if (crc32c((const char *)data + sizeof h, bytes - sizeof h) != h.check)
		return error_set(err, -EINVAL, "it is damaged: its checksum is wrong");
	for (uint32_t i = 0; i < h.count; i++) {
		get(data, i, &s);
		if (!is_sound(&s))
			return error_set(
				err, -EINVAL, "it is damaged: series %u makes no sense", i);
	}
	*ret_count = h.count;
	return 0;
}

void saved_get(const void *data, uint32_t i, struct regress_series *ret)
{
	struct saved s;
	get(data, i, &s);
	expect(is_sound(&s), "what is taken was looked at");
	*ret = (struct regress_series){ .what = s.what,
		.base_n = s.base_n,
		.base_at = s.base_at,
		.state = s.state,
		.crept = s.crept,
		.day_n = s.day_n,
		.day_sum = s.day_sum,
		.expected = s.expected,
		.expected_low = s.expected_low,
		.anchor = s.anchor,
		.swing = s.swing,
		.before = s.before,
		.after = s.after,
		.effect = s.effect,
		.p = s.p,
		.level = s.level };
	memcpy(ret->base, s.base, sizeof ret->base);
}
