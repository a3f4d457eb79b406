/*
 * Computes occupancy in closed form. Slots, grains, barriers and carveouts come from
 * cuda_occupancy.h of CUDA 13. Warps and shared memory, which that header reads from the device,
 * come from the CUDA programming guide and arch_traits.h of NVIDIA/cccl.
 */
#include "predict/occupancy.h"

#include <string.h>

#define QUARTERS       4   /* an SM's register file is in four parts, each with its own warps */
#define REGS_PER_GRAIN 256 /* a warp gets its registers in such pieces */

#define KIB(n) ((n) << 10)

/* Shared by most: the shape of everything before and after the columns that differ. */
#define DEVICE(major_, minor_, warps, blocks, barriers, smem, reserved, granule, ...)              \
	{                                                                                          \
		.major = (major_), .minor = (minor_), .warps_per_sm = (warps),                     \
		.blocks_per_sm = (blocks), .barriers_per_sm = (barriers), .regs_per_sm = 65536,    \
		.smem_per_sm_bytes = KIB(smem), .smem_optin_bytes = KIB(smem) - (reserved),        \
		.smem_reserved_bytes = (reserved), .smem_granule_bytes = (granule),                \
		.carveouts = sizeof((uint16_t[]){ __VA_ARGS__ }) / sizeof(uint16_t),               \
		.carveout_kib = { __VA_ARGS__ },                                                   \
	}

#define UP_TO_100 0, 8, 16, 32, 64, 100
#define UP_TO_164 UP_TO_100, 132, 164
#define UP_TO_228 UP_TO_164, 196, 228

/* 10.1 is the number that 11.0 had before CUDA 13. */
const struct occupancy_device occupancy_devices[] = {
	DEVICE(7, 0, 64, 32, 0, 96, 0, 256, 0, 8, 16, 32, 64, 96),
	DEVICE(7, 2, 64, 32, 0, 96, 0, 256, 0, 8, 16, 32, 64, 96),
	DEVICE(7, 5, 32, 16, 0, 64, 0, 256, 32, 64),
	DEVICE(8, 0, 64, 32, 0, 164, 1024, 128, UP_TO_164),
	DEVICE(8, 6, 48, 16, 0, 100, 1024, 128, UP_TO_100),
	DEVICE(8, 7, 48, 16, 0, 164, 1024, 128, UP_TO_164),
	DEVICE(8, 8, 48, 16, 0, 100, 1024, 128, UP_TO_100),
	DEVICE(8, 9, 48, 24, 0, 100, 1024, 128, UP_TO_100),
	DEVICE(9, 0, 64, 32, 64, 228, 1024, 128, UP_TO_228),
	DEVICE(10, 0, 64, 32, 64, 228, 1024, 128, UP_TO_228),
	DEVICE(10, 1, 48, 24, 24, 228, 1024, 128, UP_TO_228),
	DEVICE(10, 3, 64, 32, 64, 228, 1024, 128, UP_TO_228),
	DEVICE(11, 0, 48, 24, 24, 228, 1024, 128, UP_TO_228),
	DEVICE(12, 0, 48, 24, 24, 100, 1024, 128, UP_TO_100),
	DEVICE(12, 1, 48, 24, 24, 100, 1024, 128, UP_TO_100),
};
const size_t occupancy_device_count = sizeof occupancy_devices / sizeof occupancy_devices[0];

static uint32_t ceil_div(uint32_t a, uint32_t b)
{
	return a / b + (a % b != 0);
}

const struct occupancy_device *occupancy_device_find(unsigned major, unsigned minor)
{
	for (size_t i = 0; i < occupancy_device_count; i++)
		if (occupancy_devices[i].major == major && occupancy_devices[i].minor == minor)
			return &occupancy_devices[i];
	return NULL;
}

/* Up to three digits at *at; false when there is none. */
static bool take_number(const char **at, const char *end, unsigned *ret_value)
{
	const char *start = *at;
	unsigned value = 0;
	while (*at < end && *at - start < 3 && **at >= '0' && **at <= '9')
		value = value * 10 + (unsigned)(*(*at)++ - '0');
	*ret_value = value;
	return *at > start;
}

const struct occupancy_device *occupancy_device_named(const char *text, size_t bytes)
{
	const char *at = text, *end = text + bytes;
	unsigned major, minor = 0;
	const bool sm = bytes > 3 && !memcmp(text, "sm_", 3);
	if (sm)
		at += 3;
	if (!take_number(&at, end, &major))
		return NULL;
	if (at < end && *at == '.' && !sm) {
		at++;
		if (!take_number(&at, end, &minor))
			return NULL;
	} else if (sm || major > occupancy_devices[occupancy_device_count - 1].major) {
		minor = major % 10;
		major /= 10;
	}
	/* sm_90a and sm_100f are features of the compiler, not another device. */
	if (sm && end - at == 1 && (*at == 'a' || *at == 'f'))
		at++;
	return at == end ? occupancy_device_find(major, minor) : NULL;
}

/* The smallest carveout that holds `bytes`; no carveout is larger than the last. */
static uint32_t carveout_for(const struct occupancy_device *d, uint32_t bytes)
{
	for (int i = 0; i < d->carveouts; i++)
		if (KIB((uint32_t)d->carveout_kib[i]) >= bytes)
			return KIB((uint32_t)d->carveout_kib[i]);
	return d->smem_per_sm_bytes;
}

/* The preference counts as long as one block fits into it; else the next size that holds one. */
static uint32_t smem_available(
	const struct occupancy_device *d, const struct occupancy_launch *l, uint32_t block_bytes)
{
	if (!l->has_carveout)
		return d->smem_per_sm_bytes;
	const uint32_t pct = l->carveout_pct < 100 ? l->carveout_pct : 100;
	const uint32_t wish = (uint32_t)((uint64_t)d->smem_per_sm_bytes * pct / 100);
	const uint32_t preferred = carveout_for(d, wish);
	return preferred >= block_bytes ? preferred : carveout_for(d, block_bytes);
}

/* The shared memory that a block may take, the driver's reserve included.  A kernel that was
 * allowed more than 48 KiB in all, be it by the reserve alone, may have as much as there is. */
static uint32_t smem_per_block(const struct occupancy_device *d, const struct occupancy_launch *l)
{
	const uint32_t dynamic = l->has_dynamic_max ? l->dynamic_max_bytes : l->smem_dynamic_bytes;
	const uint64_t allowed = (uint64_t)l->smem_static_bytes + d->smem_reserved_bytes + dynamic;
	const bool more = !l->portable && allowed > OCCUPANCY_SMEM_PORTABLE_BYTES;
	return d->smem_reserved_bytes +
	       (more ? d->smem_optin_bytes : OCCUPANCY_SMEM_PORTABLE_BYTES);
}

static enum occupancy_refusal limit_shared(
	const struct occupancy_device *d, const struct occupancy_launch *l, struct occupancy *o)
{
	if (!l->portable && l->has_dynamic_max && l->smem_dynamic_bytes > l->dynamic_max_bytes)
		return OCCUPANCY_MUCH_DYNAMIC;
	const uint32_t most = smem_per_block(d, l);
	const uint64_t wanted =
		(uint64_t)l->smem_static_bytes + l->smem_dynamic_bytes + d->smem_reserved_bytes;
	if (wanted > most)
		return OCCUPANCY_MUCH_SHARED;
	const uint32_t granule = d->smem_granule_bytes;
	const uint32_t bytes = ceil_div((uint32_t)wanted, granule) * granule;
	if (bytes > most)
		return OCCUPANCY_MUCH_SHARED;
	o->smem_block_bytes = bytes;
	o->limit[OCCUPANCY_SHARED] =
		bytes ? smem_available(d, l, bytes) / bytes : OCCUPANCY_UNLIMITED;
	return OCCUPANCY_RUNS;
}

/* Each quarter of the SM holds as many warps as its registers allow, but a launch is checked as
 * if a block's warps were dealt out evenly, the last round in full. */
static enum occupancy_refusal limit_registers(
	const struct occupancy_device *d, uint32_t warps, uint32_t regs, struct occupancy *o)
{
	if (regs > OCCUPANCY_REGS_PER_THREAD)
		return OCCUPANCY_MANY_REGS_PER_THREAD;
	if (!regs) {
		o->limit[OCCUPANCY_REGISTERS] = OCCUPANCY_UNLIMITED;
		return OCCUPANCY_RUNS;
	}
	const uint32_t per_warp = ceil_div(regs * OCCUPANCY_WARP, REGS_PER_GRAIN) * REGS_PER_GRAIN;
	const uint32_t warps_per_quarter = d->regs_per_sm / QUARTERS / per_warp;
	if (ceil_div(warps, QUARTERS) > warps_per_quarter)
		return OCCUPANCY_MANY_REGS_PER_BLOCK;
	o->limit[OCCUPANCY_REGISTERS] = warps_per_quarter * QUARTERS / warps;
	return OCCUPANCY_RUNS;
}

static enum occupancy_refusal limit_barriers(
	const struct occupancy_device *d, uint32_t barriers, struct occupancy *o)
{
	const bool scarce = d->barriers_per_sm && barriers;
	if (scarce && barriers > d->barriers_per_sm)
		return OCCUPANCY_MANY_BARRIERS;
	o->limit[OCCUPANCY_BARRIERS] = scarce ? d->barriers_per_sm / barriers : OCCUPANCY_UNLIMITED;
	return OCCUPANCY_RUNS;
}

static enum occupancy_refusal limit_all(
	const struct occupancy_device *d, const struct occupancy_launch *l, struct occupancy *o)
{
	if (!l->threads)
		return OCCUPANCY_NO_THREADS;
	if (l->threads > OCCUPANCY_THREADS_PER_BLOCK)
		return OCCUPANCY_MANY_THREADS;
	const uint32_t warps = ceil_div(l->threads, OCCUPANCY_WARP);
	o->limit[OCCUPANCY_WARPS] = d->warps_per_sm / warps;
	o->limit[OCCUPANCY_BLOCKS] = d->blocks_per_sm;
	enum occupancy_refusal refusal = limit_registers(d, warps, l->regs, o);
	if (!refusal)
		refusal = limit_shared(d, l, o);
	return refusal ? refusal : limit_barriers(d, l->barriers, o);
}

struct occupancy occupancy_of(const struct occupancy_device *d, const struct occupancy_launch *l)
{
	struct occupancy o = { 0 };
	o.refusal = limit_all(d, l, &o);
	if (o.refusal)
		return o;
	o.blocks = OCCUPANCY_UNLIMITED;
	for (int i = 0; i < OCCUPANCY_LIMITS; i++) {
		if (o.limit[i] < o.blocks) {
			o.blocks = o.limit[i];
			o.limiter = (enum occupancy_limit)i;
			o.limiters = 0;
		}
		if (o.limit[i] == o.blocks)
			o.limiters |= 1u << i;
	}
	o.warps = o.blocks * ceil_div(l->threads, OCCUPANCY_WARP);
	return o;
}

static uint32_t knob_value(const struct occupancy_launch *l, enum occupancy_knob knob)
{
	if (knob == OCCUPANCY_BY_THREADS)
		return l->threads;
	if (knob == OCCUPANCY_BY_REGS)
		return l->regs;
	const uint64_t sum = (uint64_t)l->smem_static_bytes + l->smem_dynamic_bytes;
	return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

/* Shared memory grows and shrinks in its dynamic part while there is one. */
static struct occupancy turned(const struct occupancy_device *d, const struct occupancy_launch *l,
	enum occupancy_knob knob, uint32_t value)
{
	struct occupancy_launch other = *l;
	if (knob == OCCUPANCY_BY_THREADS) {
		other.threads = value;
	} else if (knob == OCCUPANCY_BY_REGS) {
		other.regs = value;
	} else {
		const uint32_t fixed = value < l->smem_static_bytes ? value : l->smem_static_bytes;
		other.smem_static_bytes = fixed;
		other.smem_dynamic_bytes = value - fixed;
	}
	return occupancy_of(d, &other);
}

static struct occupancy_cliff cliff_at(const struct occupancy_device *d,
	const struct occupancy_launch *l, enum occupancy_knob knob, uint32_t value)
{
	const struct occupancy o = turned(d, l, knob, value);
	return (struct occupancy_cliff){ true, value, o.blocks, o.warps };
}

/* More of anything never gives more blocks, so both searches halve a range. */
struct occupancy_cliff occupancy_more(const struct occupancy_device *d,
	const struct occupancy_launch *l, enum occupancy_knob knob)
{
	const uint32_t blocks = occupancy_of(d, l).blocks;
	uint32_t low = knob != OCCUPANCY_BY_SMEM, high = knob_value(l, knob);
	if (low >= high || turned(d, l, knob, low).blocks <= blocks)
		return (struct occupancy_cliff){ 0 };
	/* low gives more, high does not */
	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;
		if (turned(d, l, knob, middle).blocks > blocks)
			low = middle;
		else
			high = middle;
	}
	return cliff_at(d, l, knob, low);
}

struct occupancy_cliff occupancy_fewer(const struct occupancy_device *d,
	const struct occupancy_launch *l, enum occupancy_knob knob)
{
	const uint32_t beyond[] = { OCCUPANCY_THREADS_PER_BLOCK + 1, OCCUPANCY_REGS_PER_THREAD + 1,
		d->smem_per_sm_bytes + 1 };
	const uint32_t blocks = occupancy_of(d, l).blocks;
	uint32_t low = knob_value(l, knob), high = beyond[knob];
	if (!blocks)
		return (struct occupancy_cliff){ 0 };
	/* low gives as many, high none at all */
	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;
		if (turned(d, l, knob, middle).blocks < blocks)
			high = middle;
		else
			low = middle;
	}
	return cliff_at(d, l, knob, high);
}

const char *occupancy_limit_word(enum occupancy_limit limit)
{
	static const char *const words[OCCUPANCY_LIMITS] = {
		[OCCUPANCY_WARPS] = "warps",
		[OCCUPANCY_BLOCKS] = "blocks",
		[OCCUPANCY_REGISTERS] = "registers",
		[OCCUPANCY_SHARED] = "shared",
		[OCCUPANCY_BARRIERS] = "barriers",
	};
	return words[limit];
}

const char *occupancy_word(const struct occupancy *o)
{
	return o->blocks ? occupancy_limit_word(o->limiter) : "invalid";
}
