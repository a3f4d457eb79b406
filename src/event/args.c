/* Computes the key and the scalars of a launch's arguments. */
#include "event/args.h"

#include <string.h>

#define READ_BYTES 4096u /* of one launch; what lies behind is not looked at */

/* The odd constants of wyhash. */
#define MIX_A 0xa0761d6478bd642fu
#define MIX_B 0xe7037ed1a0b428dbu

static inline uint64_t mix(uint64_t key, uint64_t word)
{
	const unsigned __int128 product = (unsigned __int128)(key ^ word ^ MIX_A) * MIX_B;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The arguments that are being put together: kept apart from the memory that is read, so that the
 * compiler may hold it in registers. */
struct reading {
	uint64_t key;
	uint32_t kept, scalars, bytes;
	uint64_t *value;
};

static inline void keep(struct reading *r, uint64_t value)
{
	if (r->kept < ARGS_KEPT)
		r->value[r->kept++] = value;
	r->scalars++;
}

static inline void add_word(struct reading *r, uint64_t word)
{
	if (looks_like_address(word)) {
		r->key = mix(r->key, ~0ull);
		return;
	}
	r->key = mix(r->key, word);
	keep(r, word);
}

/* A word of a structure holds one value of 8 bytes or two small integers. */
static inline void add_struct_word(struct reading *r, uint64_t word)
{
	const uint64_t high = word >> 32;
	if (!high || high >= 1u << 24 || looks_like_address(word)) {
		add_word(r, word);
		return;
	}
	r->key = mix(r->key, word);
	keep(r, (uint32_t)word);
	keep(r, high);
}

static inline void add_structure(struct reading *r, const char *from, uint32_t bytes)
{
	uint64_t word = 0;
	uint32_t part = 0;
	for (; bytes - part >= 8; part += 8) {
		memcpy(&word, from + part, 8);
		add_struct_word(r, word);
	}
	if (part == bytes)
		return;
	word = 0;
	memcpy(&word, from + part, bytes - part);
	add_word(r, word);
}

static inline void add_param(struct reading *r, const char *from, uint32_t bytes)
{
	uint64_t word = 0;
	uint32_t half;
	r->bytes += bytes;
	if (bytes == 8) {
		memcpy(&word, from, 8);
		add_word(r, word);
	} else if (bytes == 4) {
		memcpy(&half, from, 4);
		r->key = mix(r->key, half);
		keep(r, half);
	} else {
		add_structure(r, from, bytes);
	}
}

static inline struct reading begin(struct launch_args *a, uint32_t count)
{
	return (struct reading){ .key = mix(MIX_B, count), .value = a->value };
}

static inline void finish(struct launch_args *a, const struct reading *r)
{
	a->key = r->key;
	a->kept = r->kept;
	a->scalars = r->scalars;
	a->bytes = r->bytes;
}

void args_of_pointers(
	struct launch_args *a, const struct param_place *place, uint32_t count, void *const *params)
{
	struct reading r = begin(a, count);
	for (uint32_t i = 0; i < count && r.bytes + place[i].bytes <= READ_BYTES; i++)
		if (params[i])
			add_param(&r, params[i], place[i].bytes);
	finish(a, &r);
}

void args_of_buffer(struct launch_args *a, const struct param_place *place, uint32_t count,
	const void *buffer, size_t bytes)
{
	struct reading r = begin(a, count);
	for (uint32_t i = 0; i < count && r.bytes + place[i].bytes <= READ_BYTES; i++)
		if ((size_t)place[i].offset + place[i].bytes <= bytes)
			add_param(&r, (const char *)buffer + place[i].offset, place[i].bytes);
	finish(a, &r);
}

void args_put(const struct launch_args *a, uint64_t *to)
{
	const uint64_t scalars = a->scalars < 0xffffff ? a->scalars : 0xffffff;
	to[ARGS_KEY] = a->key;
	to[ARGS_COUNTS] = a->kept | scalars << 8 | (uint64_t)a->bytes << 32;
	for (uint32_t i = 0; i < a->kept; i++)
		to[ARGS_VALUES + i] = a->value[i];
}

bool args_get(const struct record *r, struct launch_args *ret_args)
{
	const uint32_t first = LAUNCH_WORDS + (r->flags & RECORD_CLUSTER ? 1 : 0);
	const uint32_t have = r->words > RECORD_WORDS ? r->words - RECORD_WORDS : 0;
	if (!(r->flags & RECORD_ARGS) || have < first + ARGS_VALUES)
		return false;
	const uint64_t counts = r->arg[first + ARGS_COUNTS];
	uint32_t kept = (uint32_t)(counts & 0xff);
	if (kept > ARGS_KEPT)
		kept = ARGS_KEPT;
	if (kept > have - first - ARGS_VALUES)
		kept = have - first - ARGS_VALUES;
	ret_args->key = r->arg[first + ARGS_KEY];
	ret_args->kept = kept;
	ret_args->scalars = (uint32_t)(counts >> 8 & 0xffffff);
	ret_args->bytes = (uint32_t)(counts >> 32);
	for (uint32_t i = 0; i < kept; i++)
		ret_args->value[i] = r->arg[first + ARGS_VALUES + i];
	return true;
}
