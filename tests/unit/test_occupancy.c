/*
 * Occupancy against NVIDIA's calculator.  If cuda_occupancy.h is found (CUDA toolkit), the two are
 * compared on a million launches a device and on grids of edges.  Elsewhere occupancy_known.inc
 * holds answers that it gave: `test_occupancy print-known` wrote them.
 */
#include "unit.h"

#include <limits.h>
#include <stdio.h>

#include "base/hash.h"
#include "predict/occupancy.h"

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define HAVE_ORACLE 1
#else
#define HAVE_ORACLE 0
#endif

#define CASES ROUNDS(1000000, 50000)

struct known {
	uint8_t major, minor;
	struct occupancy_launch launch;
	uint32_t blocks, limiters;
};

static const struct known known[] = {
#include "occupancy_known.inc"
};

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
	random_state = hash_mix(random_state + 1);
	return (uint32_t)((random_state >> 32) * n >> 32);
}

/* Mostly what kernels have, sometimes what they cannot. */
static struct occupancy_launch any_launch(const struct occupancy_device *d)
{
	const uint32_t most = d->smem_optin_bytes;
	struct occupancy_launch l = { 0 };
	l.threads = below(8) ? 1 + below(1024) : below(1200);
	if (below(2))
		l.threads = (1 + below(32)) * 32;
	l.regs = below(3) ? 16 + below(80) : below(300);
	if (below(2))
		l.smem_static_bytes = below(4) ? below(48 << 10) : below(most + 2048);
	if (below(2))
		l.smem_dynamic_bytes = below(4) ? below(most / 2) : below(most + 2048);
	if (!below(4))
		l.smem_dynamic_bytes &= ~1023u;
	l.barriers = below(4) ? below(2) : below(18);
	l.has_carveout = below(2);
	l.carveout_pct = (uint8_t)below(101);
	l.has_dynamic_max = !below(6);
	l.dynamic_max_bytes = below(most + 1);
	l.portable = !below(12);
	return l;
}

#if HAVE_ORACLE
static cudaOccDeviceProp properties_of(const struct occupancy_device *d)
{
	return (cudaOccDeviceProp){
		.computeMajor = d->major,
		.computeMinor = d->minor,
		.maxThreadsPerBlock = 1024,
		.maxThreadsPerMultiprocessor = d->warps_per_sm * 32,
		.regsPerBlock = 65536,
		.regsPerMultiprocessor = 65536,
		.warpSize = 32,
		.sharedMemPerBlock = 48 << 10,
		.sharedMemPerMultiprocessor = d->smem_per_sm_bytes,
		.numSms = 100,
		.sharedMemPerBlockOptin = d->smem_optin_bytes,
		.reservedSharedMemPerBlock = d->smem_reserved_bytes,
	};
}

/* The older generations' caching mode must not matter, so it is set at random. */
static cudaOccError ask(
	const struct occupancy_device *d, const struct occupancy_launch *l, cudaOccResult *ret_r)
{
	static unsigned turn;
	const cudaOccDeviceProp properties = properties_of(d);
	const cudaOccFuncAttributes attributes = {
		.maxThreadsPerBlock = INT_MAX,
		.numRegs = (int)l->regs,
		.sharedSizeBytes = l->smem_static_bytes,
		.partitionedGCConfig = (cudaOccPartitionedGCConfig)(turn++ % 3),
		.shmemLimitConfig = l->portable ? FUNC_SHMEM_LIMIT_DEFAULT : FUNC_SHMEM_LIMIT_OPTIN,
		.maxDynamicSharedSizeBytes =
			l->has_dynamic_max ? l->dynamic_max_bytes : l->smem_dynamic_bytes,
		.numBlockBarriers = (int)l->barriers,
	};
	const cudaOccDeviceState state = {
		.carveoutConfig = l->has_carveout ? l->carveout_pct : SHAREDMEM_CARVEOUT_DEFAULT,
	};
	return cudaOccMaxActiveBlocksPerMultiprocessor(
		ret_r, &properties, &attributes, &state, (int)l->threads, l->smem_dynamic_bytes);
}

/* The header finds the limiting factors first and looks at barriers then; where barriers are
 * scarcer it leaves the others standing.  Here they are taken away. */
static uint32_t limiters_of(const cudaOccResult *r)
{
	static const unsigned bits[OCCUPANCY_LIMITS] = {
		[OCCUPANCY_WARPS] = OCC_LIMIT_WARPS,
		[OCCUPANCY_BLOCKS] = OCC_LIMIT_BLOCKS,
		[OCCUPANCY_REGISTERS] = OCC_LIMIT_REGISTERS,
		[OCCUPANCY_SHARED] = OCC_LIMIT_SHARED_MEMORY,
		[OCCUPANCY_BARRIERS] = OCC_LIMIT_BARRIERS,
	};
	uint32_t limiters = 0;
	for (int i = 0; i < OCCUPANCY_LIMITS; i++)
		if (r->limitingFactors & bits[i])
			limiters |= 1u << i;
	const int others =
		r->blockLimitWarps < r->blockLimitRegs ? r->blockLimitWarps : r->blockLimitRegs;
	if (limiters >> OCCUPANCY_BARRIERS && r->blockLimitBarriers < others &&
		r->blockLimitBarriers < r->blockLimitSharedMem &&
		r->blockLimitBarriers < r->blockLimitBlocks)
		limiters = 1u << OCCUPANCY_BARRIERS;
	return limiters;
}

static uint32_t limit_of(int limit)
{
	return limit == INT_MAX ? OCCUPANCY_UNLIMITED : (uint32_t)limit;
}

static bool same_limits(const cudaOccResult *r, const struct occupancy *o)
{
	return limit_of(r->blockLimitWarps) == o->limit[OCCUPANCY_WARPS] &&
	       limit_of(r->blockLimitBlocks) == o->limit[OCCUPANCY_BLOCKS] &&
	       limit_of(r->blockLimitRegs) == o->limit[OCCUPANCY_REGISTERS] &&
	       limit_of(r->blockLimitSharedMem) == o->limit[OCCUPANCY_SHARED] &&
	       limit_of(r->blockLimitBarriers) == o->limit[OCCUPANCY_BARRIERS] &&
	       r->allocatedSharedMemPerBlock == o->smem_block_bytes &&
	       limiters_of(r) == o->limiters;
}

/* Equal answers: the same blocks; where there are any, the same limits too; where there are none,
 * a reason. */
static bool agrees(const struct occupancy_device *d, const struct occupancy_launch *l)
{
	const struct occupancy o = occupancy_of(d, l);
	cudaOccResult r = { 0 };
	const cudaOccError error = ask(d, l, &r);
	const uint32_t blocks = error ? 0 : (uint32_t)r.activeBlocksPerMultiprocessor;
	bool same = blocks == o.blocks;
	if (blocks)
		same = same && same_limits(&r, &o) && !o.refusal &&
		       o.warps == blocks * ((l->threads + 31) / 32);
	else
		same = same && o.refusal && !o.limiters;
	same = same && (!error || !l->threads);
	if (!same)
		print_error("%u.%u: %u threads, %u regs, %u + %u bytes, %u barriers: %u, not %u\n",
			d->major, d->minor, l->threads, l->regs, l->smem_static_bytes,
			l->smem_dynamic_bytes, l->barriers, o.blocks, blocks);
	return same;
}

static void a_million_launches_agree_with_nvidias_calculator(void **state)
{
	for (size_t i = 0; i < occupancy_device_count; i++) {
		const struct occupancy_device *d = &occupancy_devices[i];
		unsigned running = 0;
		random_state = i;
		for (int n = 0; n < CASES; n++) {
			const struct occupancy_launch l = any_launch(d);
			assert_true(agrees(d, &l));
			running += occupancy_of(d, &l).blocks > 0;
		}
		/* the cases are worth the name: neither all run nor all are refused */
		assert_in_range(running, CASES / 2, CASES - CASES / 20);
	}
}

/* Every block size with every count of registers. */
static void every_block_size_and_register_count_agrees(void **state)
{
	for (size_t i = 0; i < occupancy_device_count; i++)
		for (uint32_t threads = 0; threads <= 1056; threads++)
			for (uint32_t regs = 0; regs <= 258; regs += 1 + (threads % 32 > 1)) {
				const struct occupancy_launch l = { .threads = threads,
					.regs = regs };
				assert_true(agrees(&occupancy_devices[i], &l));
			}
}

/* One byte to both sides of every size that means anything. */
static void every_edge_of_shared_memory_agrees(void **state)
{
	for (size_t i = 0; i < occupancy_device_count; i++) {
		const struct occupancy_device *d = &occupancy_devices[i];
		for (uint32_t bytes = 0; bytes <= d->smem_per_sm_bytes + 2048; bytes += 128)
			for (int step = -1; step <= 1; step++)
				for (int carveout = -1; carveout <= 100; carveout += 4) {
					struct occupancy_launch l = { .threads = 128, .regs = 32 };
					l.smem_dynamic_bytes = bytes || step > 0 ? bytes + step : 0;
					l.has_carveout = carveout >= 0;
					l.carveout_pct = (uint8_t)(carveout < 0 ? 0 : carveout);
					assert_true(agrees(d, &l));
					l.smem_static_bytes = l.smem_dynamic_bytes;
					l.smem_dynamic_bytes = 0;
					l.portable = carveout & 1;
					assert_true(agrees(d, &l));
				}
	}
}

/* NVIDIA's header takes the barriers of 9.0 and later into account, and no others. */
static void every_count_of_barriers_agrees(void **state)
{
	for (size_t i = 0; i < occupancy_device_count; i++)
		for (uint32_t barriers = 0; barriers <= 70; barriers++)
			for (uint32_t threads = 32; threads <= 1024; threads += 32) {
				const struct occupancy_launch l = {
					.threads = threads, .regs = 32, .barriers = barriers
				};
				assert_true(agrees(&occupancy_devices[i], &l));
			}
}

static void print_launch(const struct occupancy_launch *l)
{
	printf("{ %u, %u, %u, %u, %u, %d, %u, %d, %u, %d }", l->threads, l->regs,
		l->smem_static_bytes, l->smem_dynamic_bytes, l->barriers, l->has_carveout,
		l->carveout_pct, l->has_dynamic_max, l->dynamic_max_bytes, l->portable);
}

static int print_known(void)
{
	random_state = 2026;
	for (size_t i = 0; i < occupancy_device_count; i++)
		for (int n = 0; n < 60; n++) {
			const struct occupancy_device *d = &occupancy_devices[i];
			const struct occupancy_launch l = any_launch(d);
			cudaOccResult r = { 0 };
			const bool runs = !ask(d, &l, &r) && r.activeBlocksPerMultiprocessor;
			printf("{ %u, %u, ", d->major, d->minor);
			print_launch(&l);
			printf(", %d, %u },\n", runs ? r.activeBlocksPerMultiprocessor : 0,
				runs ? limiters_of(&r) : 0);
		}
	return 0;
}
#endif

static void known_answers_are_given(void **state)
{
	assert_true(COUNT_OF(known) >= 60 * occupancy_device_count);
	for (size_t i = 0; i < COUNT_OF(known); i++) {
		const struct occupancy_device *d =
			occupancy_device_find(known[i].major, known[i].minor);
		assert_non_null(d);
		const struct occupancy o = occupancy_of(d, &known[i].launch);
		assert_int_equal(o.blocks, known[i].blocks);
		assert_int_equal(o.limiters, known[i].limiters);
	}
}

static void a_refused_launch_has_its_reason(void **state)
{
	const struct occupancy_device *h100 = occupancy_device_find(9, 0);
	static const struct {
		struct occupancy_launch launch;
		enum occupancy_refusal refusal;
	} rows[] = {
		{ { .threads = 0 }, OCCUPANCY_NO_THREADS },
		{ { .threads = 1025 }, OCCUPANCY_MANY_THREADS },
		{ { .threads = UINT32_MAX, .regs = UINT32_MAX }, OCCUPANCY_MANY_THREADS },
		{ { .threads = 32, .regs = 257 }, OCCUPANCY_MANY_REGS_PER_THREAD },
		{ { .threads = 32, .regs = UINT32_MAX }, OCCUPANCY_MANY_REGS_PER_THREAD },
		{ { .threads = 1024, .regs = 65 }, OCCUPANCY_MANY_REGS_PER_BLOCK },
		{ { .threads = 32, .smem_dynamic_bytes = (227 << 10) + 1 }, OCCUPANCY_MUCH_SHARED },
		{ { .threads = 32,
			  .smem_static_bytes = UINT32_MAX,
			  .smem_dynamic_bytes = UINT32_MAX },
			OCCUPANCY_MUCH_SHARED },
		{ { .threads = 32, .smem_dynamic_bytes = (48 << 10) + 1, .portable = true },
			OCCUPANCY_MUCH_SHARED },
		{ { .threads = 32, .smem_dynamic_bytes = 1, .has_dynamic_max = true },
			OCCUPANCY_MUCH_DYNAMIC },
		{ { .threads = 32, .barriers = 65 }, OCCUPANCY_MANY_BARRIERS },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct occupancy o = occupancy_of(h100, &rows[i].launch);
		assert_int_equal(o.refusal, rows[i].refusal);
		assert_int_equal(o.blocks, 0);
		assert_string_equal(occupancy_word(&o), "invalid");
	}
}

/* A barrier whose number is in a register counts as sixteen. */
static void sixteen_barriers_leave_four_blocks_on_hopper(void **state)
{
	const struct occupancy_launch l = { .threads = 128, .regs = 32, .barriers = 16 };
	const struct occupancy hopper = occupancy_of(occupancy_device_find(9, 0), &l);
	const struct occupancy ampere = occupancy_of(occupancy_device_find(8, 0), &l);
	const struct occupancy blackwell = occupancy_of(occupancy_device_find(12, 0), &l);
	assert_int_equal(hopper.blocks, 4);
	assert_string_equal(occupancy_word(&hopper), "barriers");
	assert_int_equal(ampere.blocks, 16);
	assert_int_equal(blackwell.blocks, 1);
}

/* Ties are told in the order of the enumeration. */
static void of_several_limits_the_first_is_named(void **state)
{
	const struct occupancy_launch l = { .threads = 256, .regs = 32 };
	const struct occupancy o = occupancy_of(occupancy_device_find(9, 0), &l);
	assert_int_equal(o.blocks, 8);
	assert_int_equal(o.limiters, 1 << OCCUPANCY_WARPS | 1 << OCCUPANCY_REGISTERS);
	assert_string_equal(occupancy_word(&o), "warps");
}

static uint32_t blocks_with(const struct occupancy_device *d, struct occupancy_launch l,
	enum occupancy_knob knob, uint32_t value)
{
	if (knob == OCCUPANCY_BY_THREADS)
		l.threads = value;
	else if (knob == OCCUPANCY_BY_REGS)
		l.regs = value;
	else if (value < l.smem_static_bytes)
		l.smem_static_bytes = value, l.smem_dynamic_bytes = 0;
	else
		l.smem_dynamic_bytes = value - l.smem_static_bytes;
	return occupancy_of(d, &l).blocks;
}

/* The slow way: one step after another. */
static void check_cliffs(const struct occupancy_device *d, const struct occupancy_launch *l,
	enum occupancy_knob knob)
{
	const uint32_t now[] = { l->threads, l->regs,
		l->smem_static_bytes + l->smem_dynamic_bytes };
	const uint32_t blocks = occupancy_of(d, l).blocks;
	const struct occupancy_cliff more = occupancy_more(d, l, knob);
	const struct occupancy_cliff fewer = occupancy_fewer(d, l, knob);
	const int64_t lowest = knob != OCCUPANCY_BY_SMEM;
	int64_t down = (int64_t)now[knob] - 1;
	while (down >= lowest && blocks_with(d, *l, knob, (uint32_t)down) <= blocks)
		down--;
	assert_int_equal(more.found, down >= lowest);
	if (more.found) {
		assert_int_equal(more.value, down);
		assert_int_equal(more.blocks, blocks_with(d, *l, knob, more.value));
	}
	assert_int_equal(fewer.found, blocks > 0);
	if (!fewer.found)
		return;
	uint32_t up = now[knob] + 1;
	while (blocks_with(d, *l, knob, up) >= blocks)
		up++;
	assert_int_equal(fewer.value, up);
	assert_int_equal(fewer.blocks, blocks_with(d, *l, knob, up));
}

static void a_cliff_is_where_a_walk_finds_it(void **state)
{
	random_state = 7;
	for (size_t i = 0; i < occupancy_device_count; i++)
		for (int n = 0; n < 60; n++) {
			const struct occupancy_launch l = any_launch(&occupancy_devices[i]);
			for (int knob = OCCUPANCY_BY_THREADS; knob <= OCCUPANCY_BY_SMEM; knob++)
				check_cliffs(&occupancy_devices[i], &l, (enum occupancy_knob)knob);
		}
}

static void a_device_is_found_by_each_of_its_names(void **state)
{
	static const struct {
		const char *text;
		unsigned major, minor;
	} rows[] = { { "9.0", 9, 0 }, { "9", 9, 0 }, { "90", 9, 0 }, { "sm_90", 9, 0 },
		{ "sm_90a", 9, 0 }, { "12.1", 12, 1 }, { "121", 12, 1 }, { "12", 12, 0 },
		{ "sm_100f", 10, 0 }, { "7.5", 7, 5 }, { "75", 7, 5 }, { "10.3", 10, 3 } };
	static const char *const strangers[] = { "", "6.1", "9.", ".0", "9.1", "x", "sm_", "sm_9",
		"9.0a", "sm_90x", "sm_9.0", "-9.0", "9.0 ", "9000", "13", "9.0.0" };
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct occupancy_device *d =
			occupancy_device_named(rows[i].text, strlen(rows[i].text));
		assert_non_null(d);
		assert_ptr_equal(d, occupancy_device_find(rows[i].major, rows[i].minor));
	}
	for (size_t i = 0; i < COUNT_OF(strangers); i++)
		assert_null(occupancy_device_named(strangers[i], strlen(strangers[i])));
}

/* The table of devices must have these values for the arithmetic to hold. */
static void the_devices_are_sound(void **state)
{
	for (size_t i = 0; i < occupancy_device_count; i++) {
		const struct occupancy_device *d = &occupancy_devices[i];
		assert_ptr_equal(d, occupancy_device_find(d->major, d->minor));
		if (i)
			assert_true(d->major * 10 + d->minor > d[-1].major * 10 + d[-1].minor);
		for (int c = 1; c < d->carveouts; c++)
			assert_true(d->carveout_kib[c] > d->carveout_kib[c - 1]);
		assert_int_equal(d->carveout_kib[d->carveouts - 1] * 1024u, d->smem_per_sm_bytes);
		assert_int_equal(
			d->smem_optin_bytes + d->smem_reserved_bytes, d->smem_per_sm_bytes);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#if HAVE_ORACLE
		cmocka_unit_test(a_million_launches_agree_with_nvidias_calculator),
		cmocka_unit_test(every_block_size_and_register_count_agrees),
		cmocka_unit_test(every_edge_of_shared_memory_agrees),
		cmocka_unit_test(every_count_of_barriers_agrees),
#endif
		cmocka_unit_test(known_answers_are_given),
		cmocka_unit_test(a_refused_launch_has_its_reason),
		cmocka_unit_test(sixteen_barriers_leave_four_blocks_on_hopper),
		cmocka_unit_test(of_several_limits_the_first_is_named),
		cmocka_unit_test(a_cliff_is_where_a_walk_finds_it),
		cmocka_unit_test(a_device_is_found_by_each_of_its_names),
		cmocka_unit_test(the_devices_are_sound),
	};
#if HAVE_ORACLE
	if (argc > 1 && !strcmp(argv[1], "print-known"))
		return print_known();
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
