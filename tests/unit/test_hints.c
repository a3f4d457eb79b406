/* Each rule of weir hints on a trace that has its problem, and on one that has not.  Times are
 * those of an H200 with 132 multiprocessors. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "maker.h"
#include "report/report_make.h"
#include "hint/hint.h"
#include "trace/activity.h"

#define FILE_NAME "test_hints.weir"
#define MANY      4000

static struct maker *m;
static int calls, names;
static uint64_t host, device; /* the times of both, ns */
static uint64_t correlation;
static struct gpu_activity activity[MANY];
static size_t activity_count;
static struct link links[MANY];
static size_t link_count;
static uint64_t string_count;
static struct trace *trace;
static struct report *report;
static struct hints *said;

enum { FN_STREAM_CREATE = 200, FN_OCCUPANCY };
static const char more[] =
	"200 driver stream call cuStreamCreate(out CUstream phStream, uint Flags)\n"
	"201 driver query call cuOccupancyMaxActiveBlocksPerMultiprocessor(out int numBlocks, "
	"CUfunction func, int blockSize, size_t dynamicSMemSize)\n";

static int begin(void **state)
{
	char *schema;
	if (asprintf(&schema, "%s%s", maker_schema, more) < 0)
		abort();
	m = maker_new(FILE_NAME, schema, TRACE_GRAIN);
	free(schema);
	names = maker_thread(m, CHUNK_META, 100, 100, "main");
	calls = maker_thread(m, CHUNK_EVENTS, 100, 100, "main");
	host = device = 2000000;
	correlation = activity_count = link_count = string_count = 0;
	const uint64_t h200[] = { 0, 141ull << 30, 132, 9 << 16 };
	maker_meta(m, names, META_DEVICE, 1000000, 4, h200, "NVIDIA H200", 11, 11);
	return 0;
}

static uint32_t text(const char *s)
{
	const uint64_t id = ++string_count;
	maker_meta(m, names, META_STRING, 1000000, 1, &id, s, (uint32_t)strlen(s),
		(uint32_t)strlen(s));
	return (uint32_t)id;
}

static void call(uint16_t fn, uint64_t ns, int count, ...)
{
	uint64_t args[8];
	va_list ap;
	va_start(ap, count);
	for (int i = 0; i < count; i++)
		args[i] = va_arg(ap, uint64_t);
	va_end(ap);
	maker_put(m, calls,
		(struct record){ .ticks = host,
			.dur = (uint32_t)ns,
			.fn = fn,
			.words = (uint16_t)(RECORD_WORDS + count) },
		args);
	host += ns;
}

#define U(x) ((uint64_t)(x))

/* Work that the call which is about to be made asks for: it runs when the device is free. */
static struct gpu_activity *ask(uint16_t kind, uint64_t ns)
{
	struct gpu_activity *w = &activity[activity_count++];
	assert_true(activity_count < MANY);
	device = device + 1000 > host + 2000 ? device + 1000 : host + 2000;
	*w = (struct gpu_activity){ .start_ns = device,
		.end_ns = device + ns,
		.correlation = ++correlation,
		.stream = 7,
		.kind = kind,
		.valid = GPU_HAS_CORRELATION | GPU_HAS_DEVICE | GPU_HAS_STREAM };
	device += ns;
	links[link_count++] =
		(struct link){ .correlation = correlation, .ticks = host, .dur = 1, .tid = 100 };
	return w;
}

struct shape {
	uint32_t name, grid, block, registers, shared;
};

static struct gpu_activity *launch_on(struct shape s, uint64_t ns, uint64_t stream)
{
	struct gpu_activity *w = ask(GPU_KERNEL, ns);
	w->name = s.name;
	w->grid[0] = s.grid;
	w->block[0] = s.block;
	w->grid[1] = w->grid[2] = w->block[1] = w->block[2] = 1;
	w->registers = (uint16_t)s.registers;
	w->shared_dynamic = s.shared;
	w->valid |= GPU_HAS_SHAPE | GPU_HAS_SHARED | GPU_HAS_REGISTERS;
	call(FN_LAUNCH, 2500, 5, U(1), stream, U(1), U(1), U(1));
	return w;
}

static void launch(struct shape s, uint64_t ns)
{
	launch_on(s, ns, 0x5000);
}

static void launches(int count, struct shape s, uint64_t ns)
{
	for (int i = 0; i < count; i++)
		launch(s, ns);
}

static void copy_in(uint64_t bytes, uint64_t ns, uint8_t from, uint64_t address)
{
	struct gpu_activity *w = ask(GPU_MEMCPY, ns);
	w->bytes = bytes;
	w->what = COPY_HTOD;
	w->from = from;
	w->to = MEMORY_KIND_DEVICE;
	w->valid |= GPU_HAS_BYTES | GPU_HAS_WHAT | GPU_HAS_MEMORY_KINDS;
	call(FN_HTOD, 2500, 3, U(0x7000), address, bytes);
}

static void wait_for_device(void)
{
	const uint64_t ns = device > host ? device - host + 3000 : 1000;
	call(FN_SYNC, ns, 1, U(0x5000));
}

static void look(void)
{
	struct error err;
	maker_chunk(
		m, CHUNK_DEVICE, 100, 0, activity, (uint32_t)(activity_count * sizeof *activity));
	maker_chunk(m, CHUNK_LINKS, 100, 0, links, (uint32_t)(link_count * sizeof *links));
	maker_finish(m, (device > host ? device : host) + 5000, false);
	m = NULL;
	assert_int_equal(trace_open(FILE_NAME, &trace, &err), 0);
	assert_int_equal(report_make(trace, 1, FACETS_BUT_HINTS, &report, &err), 0);
	assert_int_equal(hints_make(report, &said), 0);
}

static int end(void **state)
{
	if (m)
		maker_finish(m, host, false);
	hints_free(said);
	report_free(report);
	trace_close(trace);
	said = NULL;
	report = NULL;
	trace = NULL;
	unlink(FILE_NAME);
	return 0;
}

static void expect_first(const char *id, double least_pct, double most_pct)
{
	look();
	assert_true(said->v.n > 0);
	const struct hint *h = &said->v.v[0];
	assert_string_equal(h->rule->id, id);
	if (!(h->gain * 100 >= least_pct && h->gain * 100 <= most_pct))
		fail_msg("%s: %.1f %%", h->evidence, h->gain * 100);
}

/* The rules and the report's breakdown have one name for one thing. */
static void expect_words(enum wall_part part)
{
	const struct hint *h = &said->v.v[0];
	const char *words = wall_part_text[part];
	assert_true(report->analysis.wall_ns[part] > 0);
	if (strncmp(h->evidence, words, strlen(words)) != 0)
		fail_msg("%s: the breakdown says: %s", h->evidence, words);
	if (!strstr(h->rule->title, words))
		fail_msg("%s: the breakdown says: %s", h->rule->title, words);
}

static void expect_without(const char *id)
{
	look();
	for (size_t i = 0; i < said->v.n; i++)
		assert_string_not_equal(said->v.v[i].rule->id, id);
}

static void expect_none(void)
{
	look();
	if (said->v.n)
		fail_msg("%s: %s", said->v.v[0].rule->id, said->v.v[0].evidence);
}

static void blocks_of_one_warp_leave_half_of_an_sm_empty(void **state)
{
	launches(100, (struct shape){ text("k"), 100000, 32, 16, 0 }, 100000);
	expect_first("block-size", 49, 51);
}

static void blocks_that_are_too_large_leave_a_part_empty(void **state)
{
	launches(100, (struct shape){ text("k"), 100000, 1024, 38, 0 }, 100000);
	expect_first("block-size", 32, 35);
}

static void blocks_of_eight_warps_fill_an_sm(void **state)
{
	launches(100, (struct shape){ text("k"), 132 * 800, 256, 16, 0 }, 100000);
	expect_none();
}

static void a_grid_smaller_than_the_device_leaves_sms_idle(void **state)
{
	launches(100, (struct shape){ text("k"), 33, 256, 16, 0 }, 1000000);
	expect_first("small-grid", 73, 75);
}

/* As in training on several devices, all of which do the same. */
static void devices_that_work_side_by_side_gain_what_one_does(void **state)
{
	for (uint64_t d = 1; d < 4; d++) {
		const uint64_t h200[] = { d, 141ull << 30, 132, 9 << 16 };
		maker_meta(m, names, META_DEVICE, 1000000, 4, h200, "NVIDIA H200", 11, 11);
	}
	launches(100, (struct shape){ text("k"), 33, 256, 16, 0 }, 1000000);
	for (uint32_t d = 1; d < 4; d++)
		for (size_t i = 0; i < 100; i++) {
			activity[activity_count] = activity[i];
			activity[activity_count].device = d;
			activity[activity_count++].correlation = ++correlation;
			links[link_count] = links[i];
			links[link_count++].correlation = correlation;
		}
	expect_first("small-grid", 73, 75);
	assert_int_equal(said->v.n, 1);
}

static void a_block_for_each_sm_is_enough(void **state)
{
	launches(100, (struct shape){ text("k"), 132, 256, 16, 0 }, 1000000);
	expect_none();
}

static void a_small_grid_of_a_short_kernel_does_not_matter(void **state)
{
	for (int i = 0; i < 100; i++) {
		launch((struct shape){ text("k"), 1, 256, 16, 0 }, 3000);
		launch((struct shape){ text("j"), 132, 128, 16, 0 }, 300000);
	}
	expect_none();
}

static void one_block_too_many_costs_a_wave(void **state)
{
	launches(100, (struct shape){ text("k"), 132 * 8 + 1, 256, 16, 0 }, 100000);
	expect_first("tail", 48, 51);
}

static void half_empty_warps_are_found(void **state)
{
	launches(100, (struct shape){ text("k"), 132 * 3200, 33, 16, 0 }, 100000);
	expect_first("lane-efficiency", 47, 50);
}

static void registers_that_keep_a_block_out_are_found(void **state)
{
	launches(100, (struct shape){ text("k"), 13200, 512, 88, 0 }, 100000);
	expect_first("occupancy-registers", 49, 51);
}

static void shared_memory_that_keeps_a_block_out_is_found(void **state)
{
	launches(100, (struct shape){ text("k"), 13200, 512, 16, 160 << 10 }, 100000);
	expect_first("occupancy-shared", 49, 51);
}

static void a_cliff_is_found_as_one(void **state)
{
	launches(100, (struct shape){ text("k"), 13200, 512, 16, 114 << 10 }, 100000);
	expect_first("occupancy-cliff", 49, 51);
}

static void ask_occupancy(uint64_t blocks)
{
	maker_name(m, names, 1000000, 0x77, "k");
	call(FN_OCCUPANCY, 500, 4, blocks, U(0x77), U(128), U(0));
	launches(100, (struct shape){ text("k"), 132 * 16 * 6, 128, 16, 0 }, 100000);
}

static void barriers_that_keep_blocks_out_are_found(void **state)
{
	ask_occupancy(4);
	expect_first("occupancy-barriers", 74, 76);
}

static void the_drivers_word_is_compared(void **state)
{
	ask_occupancy(16);
	expect_none();
}

static void kernels_of_libraries_are_left_alone(void **state)
{
	launches(100, (struct shape){ text("cutlass_kernel"), 13200, 128, 200, 160 << 10 }, 100000);
	expect_none();
}

static void short_kernels_wait_for_their_launch(void **state)
{
	for (int i = 0; i < 500; i++) {
		launch((struct shape){ text("k"), 200, 256, 16, 0 }, 1500);
		host += 8000;
	}
	expect_first("launch-bound", 70, 90);
	expect_words(WALL_LAUNCHING);
}

/* So have the other causes: each is a part of the breakdown, called idle there. */
static void causes_are_parts_of_the_breakdown(void **state)
{
	for (int c = 0; c < GAP_CAUSES; c++) {
		const enum wall_part part = gap_cause_words[c].part;
		assert_true(part >= WALL_LAUNCHING && part <= WALL_UNKNOWN);
		assert_true(!strncmp(wall_part_text[part], "idle", 4));
		assert_non_null(gap_cause_words[c].besides);
	}
}

static void kernels_in_graphs_do_not_wait(void **state)
{
	const struct shape s = { text("k"), 200, 256, 16, 0 };
	for (int i = 0; i < 500; i++) {
		launch_on(s, 1500, 0x5000);
		activity[activity_count - 1].graph = 1;
		activity[activity_count - 1].graph_node = 1;
		activity[activity_count - 1].valid |= GPU_HAS_GRAPH;
		if (i % 100)
			activity[activity_count - 1].correlation =
				activity[activity_count - 2].correlation;
		host -= i % 100 ? 2500 : 0;
	}
	expect_none();
}

static void waiting_for_each_kernel_is_found(void **state)
{
	for (int i = 0; i < 200; i++) {
		launch((struct shape){ text("k"), 200, 256, 16, 0 }, 10000);
		wait_for_device();
		host += 8000;
	}
	expect_first("sync-in-loop", 30, 70);
	expect_words(WALL_WAITING);
	assert_string_equal(said->v.v[0].where, "cuStreamSynchronize");
}

static void the_operator_that_waits_is_named(void **state)
{
	struct range ranges[100];
	const uint32_t name = text("aten::item");
	for (int i = 0; i < 100; i++) {
		launch((struct shape){ text("k"), 200, 256, 16, 0 }, 10000);
		ranges[i] = (struct range){ .ticks = host,
			.dur = 20000,
			.tid = 100,
			.kind = RANGE_OPERATOR,
			.name = name };
		wait_for_device();
		host += 20000;
	}
	maker_chunk(m, CHUNK_RANGES, 100, 100, ranges, sizeof ranges);
	look();
	assert_true(said->v.n > 0);
	assert_string_equal(said->v.v[0].where, "cuStreamSynchronize, mostly in aten::item");
}

static void waiting_once_is_not(void **state)
{
	launches(200, (struct shape){ text("k"), 200, 256, 16, 0 }, 10000);
	wait_for_device();
	expect_none();
}

static void a_host_that_computes_is_found(void **state)
{
	for (int i = 0; i < 50; i++) {
		launch((struct shape){ text("k"), 200, 256, 16, 0 }, 300000);
		wait_for_device();
		host += 300000;
	}
	expect_first("idle-host", 45, 52);
	expect_words(WALL_HOST);
}

static void a_long_idle_gap_that_came_up_once_is_start_up(void **state)
{
	launches(10, (struct shape){ text("k"), 200, 256, 16, 0 }, 100000);
	wait_for_device();
	host += 100000000;
	launches(10, (struct shape){ text("k"), 200, 256, 16, 0 }, 100000);
	expect_none();
}

static void what_comes_before_the_loop_does_not_count(void **state)
{
	for (int i = 0; i < 20; i++)
		copy_in(64 << 20, 6500000, MEMORY_KIND_PAGEABLE, 0x9000 + (uint64_t)i);
	launches(100, (struct shape){ text("k"), 132, 256, 16, 0 }, 100000);
	expect_none();
}

static void idle_gaps_that_differ_from_step_to_step_count(void **state)
{
	for (int i = 0; i < 50; i++) {
		launch((struct shape){ text("k"), 132, 256, 16, 0 }, 300000);
		wait_for_device();
		host += 200000 + (uint64_t)(i % 5) * 400000;
	}
	expect_first("idle-host", 70, 80);
}

static void allocating_in_the_loop_is_found(void **state)
{
	for (int i = 0; i < 100; i++) {
		call(FN_ALLOC, 30000, 2, U(0x10000), U(1 << 20));
		launch((struct shape){ text("k"), 200, 256, 16, 0 }, 100000);
		call(FN_FREE, device - host + 30000, 1, U(0x10000));
	}
	expect_first("alloc-in-loop", 30, 45);
}

/* One frees often and at once, or waits where the device is busy; nothing runs while another
 * allocates. */
static void the_call_that_keeps_the_device_idle_is_named(void **state)
{
	for (int i = 0; i < 100; i++) {
		call(FN_ALLOC, 60000, 2, U(0x10000), U(1 << 20));
		for (int k = 0; k < 3; k++)
			call(FN_FREE_HOST, 500, 1, U(0x20000));
		launch((struct shape){ text("k"), 200, 256, 16, 0 }, 100000);
		call(FN_FREE, device - host + 5000, 1, U(0x10000));
	}
	expect_first("alloc-in-loop", 30, 50);
	/* Short calls are no "long CUDA call", which the breakdown has apart. */
	assert_null(strstr(said->v.v[0].evidence, wall_part_text[WALL_DRIVER]));
	assert_string_equal(said->v.v[0].where, "cuMemAlloc_v2");
}

static void use_streams(bool apart)
{
	const struct shape wide = { text("wide"), 132, 128, 16, 0 },
			   narrow = { text("narrow"), 132, 32, 16, 0 };
	for (uint64_t s = 0; s < 4; s++)
		call(FN_STREAM_CREATE, 5000, 2, 0x6000 + s, U(apart));
	for (int i = 0; i < 200; i++) {
		struct gpu_activity *w = launch_on(wide, 100000, 0x6000 + (uint64_t)i % 4);
		w->stream = 20 + (uint32_t)i % 4;
		launch_on(narrow, 6000, 0);
	}
}

static void streams_that_wait_for_the_default_stream_are_found(void **state)
{
	use_streams(false);
	expect_first("default-stream", 70, 80);
}

static void streams_that_do_not_wait_are_not(void **state)
{
	use_streams(true);
	expect_none();
}

static void copies_of_pageable_memory_are_found(void **state)
{
	for (int i = 0; i < 30; i++)
		copy_in(64 << 20, 6500000, MEMORY_KIND_PAGEABLE, 0x9000);
	expect_first("pageable-copies", 75, 85);
}

static void copies_of_pinned_memory_are_not(void **state)
{
	for (int i = 0; i < 30; i++)
		copy_in(64 << 20, 1250000, MEMORY_KIND_PINNED, 0x9000);
	expect_none();
}

static void copies_between_kernels_are_found(void **state)
{
	for (int i = 0; i < 30; i++) {
		copy_in(16 << 20, 300000, MEMORY_KIND_PINNED, 0x9000);
		launch((struct shape){ text("k"), 200, 256, 16, 0 }, 300000);
	}
	expect_first("copies-in-loop", 46, 52);
	assert_non_null(strstr(said->v.v[0].evidence, "again and again"));
}

static void results_that_are_copied_back_are_found(void **state)
{
	for (int i = 0; i < 30; i++) {
		launch((struct shape){ text("k"), 200, 256, 16, 0 }, 300000);
		copy_in(16 << 20, 300000, MEMORY_KIND_DEVICE, 0);
		activity[activity_count - 1].what = COPY_DTOH;
		activity[activity_count - 1].to = MEMORY_KIND_PINNED;
	}
	launch((struct shape){ text("k"), 200, 256, 16, 0 }, 300000);
	expect_first("copies-in-loop", 46, 52);
	assert_string_equal(said->v.v[0].where, "30 copies DtoH between kernels, 480 MiB");
}

static void memory_that_grows_is_found(void **state)
{
	/* A large block that stays is no leak. */
	call(FN_MANAGED, 1000, 3, U(1) << 40, U(1) << 30, U(1));
	for (uint64_t i = 0; i < 100; i++) {
		call(FN_ALLOC, 1000, 2, (i + 1) << 24, U(1 << 20));
		launch((struct shape){ text("k"), 200, 256, 16, 0 }, 300000);
	}
	look();
	assert_int_equal(said->v.n, 1);
	assert_string_equal(said->v.v[0].rule->id, "leak");
	assert_string_equal(said->v.v[0].where, "memory on the GPU, allocated by cuMemAlloc_v2");
	assert_true(isnan(said->v.v[0].gain));
}

static void memory_in_pieces_is_found(void **state)
{
	const uint64_t base = 1ull << 32, bytes = 64 << 10;
	for (uint64_t i = 0; i < 2000; i++)
		call(FN_ALLOC, 1000, 2, base + i * bytes, bytes);
	for (uint64_t i = 0; i < 2000; i += 2)
		call(FN_FREE, 1000, 1, base + i * bytes);
	call(FN_ALLOC, 1000, 2, base << 1, 2000 * bytes); /* fits into none of the free extents */
	look();
	assert_int_equal(said->v.n, 1);
	assert_string_equal(said->v.v[0].rule->id, "fragmentation");
}

/* As after a step of training: the peak had no free extents, and there is room for all that comes.
 */
static void memory_in_pieces_after_the_peak_is_not(void **state)
{
	const uint64_t base = 1ull << 32, bytes = 64 << 10;
	for (uint64_t i = 0; i < 2000; i++)
		call(FN_ALLOC, 1000, 2, base + i * bytes, bytes);
	for (uint64_t i = 0; i < 2000; i += 2)
		call(FN_FREE, 1000, 1, base + i * bytes);
	expect_none();
}

static void memory_freed_in_one_piece_is_not(void **state)
{
	const uint64_t base = 1ull << 32, bytes = 64 << 10;
	for (uint64_t i = 0; i < 2000; i++)
		call(FN_ALLOC, 1000, 2, base + i * bytes, bytes);
	for (uint64_t i = 0; i < 1000; i++)
		call(FN_FREE, 1000, 1, base + i * bytes);
	expect_none();
}

#define POINTWISE "void at::native::vectorized_elementwise_kernel<4, at::native::"

static void products_in_fp32_are_found(void **state)
{
	const struct shape s = { text("cutlass_80_simt_sgemm_256x128_8x4_nn_align1"), 512, 256, 250,
		0 };
	launches(20, s, 2600000);
	expect_first("fp32-matmul", 75, 90);
}

static void products_in_tf32_are_not(void **state)
{
	const struct shape s = { text("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16"),
		1024, 256, 200, 0 };
	launches(20, s, 400000);
	expect_none();
}

#define FPROP "sm80_xmma_fprop_implicit_gemm_indexed_"
#define WGRAD "sm80_xmma_wgrad_implicit_gemm_indexed_"
#define TO_LAST                                                                                    \
	"void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false, true>(int)"

static void convolutions_in_fp32_are_found(void **state)
{
	launches(20,
		(struct shape){ text(FPROP "f32f32_f32f32_f32_nhwckrsc_nhwc_kernel_cudnn"), 1024,
			256, 200, 0 },
		2600000);
	expect_first("fp32-matmul", 75, 90);
}

static void train(const char *product, const char *gradient)
{
	for (int i = 0; i < 20; i++) {
		launch((struct shape){ text(product), 1024, 256, 200, 0 }, 400000);
		launch((struct shape){ text(gradient), 1024, 256, 200, 0 }, 400000);
	}
}

static void a_training_in_tf32_is_advised_of_mixed_precision(void **state)
{
	train(FPROP "tf32f32_tf32f32_f32_kernel_cudnn", WGRAD "tf32f32_tf32f32_f32_kernel_cudnn");
	expect_first("mixed-precision", 40, 50);
}

static void a_training_in_bf16_is_not(void **state)
{
	train(FPROP "bf16bf16_bf16f32_f32_kernel_cudnn", WGRAD "bf16bf16_bf16f32_f32_kernel_cudnn");
	expect_none();
}

static void convolve(uint64_t layout_ns)
{
	for (int i = 0; i < 20; i++) {
		if (layout_ns)
			launch((struct shape){ text(TO_LAST), 1024, 256, 32, 0 }, layout_ns);
		launch((struct shape){ text(FPROP "tf32f32_tf32f32_f32_kernel_cudnn"), 1024, 256,
			       200, 0 },
			400000);
	}
}

static void layouts_that_change_for_each_convolution_are_found(void **state)
{
	convolve(100000);
	expect_first("layout-transposes", 18, 22);
}

static void layouts_that_hardly_take_time_are_not(void **state)
{
	convolve(10000);
	expect_none();
}

static void convolutions_of_images_that_are_channels_last_are_not(void **state)
{
	convolve(0);
	expect_none();
}

static void large_half_products_may_do_with_eight_bits(void **state)
{
	launches(20,
		(struct shape){
			text("nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NNT"), 132, 384, 168, 0 },
		1500000);
	expect_first("low-precision", 25, 45);
}

static void products_in_eight_bits_are_done_already(void **state)
{
	launches(20,
		(struct shape){ text("nvjet_sm90_qqtst_128x256_128x4_2x1_v_bz_coopA_TNT"), 132, 384,
			168, 0 },
		800000);
	expect_none();
}

static void a_training_is_not_advised_to_use_eight_bits(void **state)
{
	launches(20,
		(struct shape){
			text("nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NNT"), 132, 384, 168, 0 },
		1500000);
	launch((struct shape){ text("void at::native::layer_norm_backward_kernel"), 132, 256, 32,
		       0 },
		100000);
	expect_none();
}

static void attention_by_hand_is_found(void **state)
{
	const struct shape product = { text("nvjet_sm90_hsh_128x128"), 132, 384, 168, 0 },
			   scale = { text(POINTWISE "mul>"), 9000, 128, 16, 0 },
			   softmax = { text("void softmax_warp_forward<half>"), 9000, 128, 16, 0 };
	for (int i = 0; i < 20; i++) {
		launch(product, 200000);
		launch(scale, 300000);
		launch(softmax, 300000);
		launch(product, 200000);
	}
	expect_first("unfused-attention", 65, 80);
}

/* A product of 400 us, and GELU and an addition of 150 us each: 424 us of 700 are left. */
static void feed_forward(const char *last, uint64_t last_ns)
{
	const struct shape product = { text("nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_TNT"), 132,
		384, 168, 0 },
			   gelu = { text(POINTWISE "GeluCUDAKernelImpl>"), 9000, 128, 16, 0 },
			   then = { text(last), 9000, 128, 16, 0 };
	for (int i = 0; i < 20; i++) {
		launch(product, 400000);
		launch(gelu, last_ns);
		launch(then, last_ns);
	}
}

static void products_that_end_in_other_kernels_are_found(void **state)
{
	feed_forward(POINTWISE "CUDAFunctor_add>", 150000);
	expect_first("unfused-product", 36, 42);
}

static void products_whose_other_kernels_hardly_take_time_are_not(void **state)
{
	feed_forward(POINTWISE "CUDAFunctor_add>", 2000);
	expect_without("unfused-product");
}

static void a_training_s_products_are_not(void **state)
{
	feed_forward("void at::native::layer_norm_backward_kernel", 150000);
	expect_without("unfused-product");
}

static void products_and_softmaxes_by_chance_are_not(void **state)
{
	for (uint32_t i = 0; i < 30; i++) {
		const uint32_t grid = 132 * (i + 1);
		launch((struct shape){ text("nvjet_sm90_hsh_128x128"), grid, 384, 168, 0 }, 40000);
		launch((struct shape){ text("void softmax_forward<half>"), grid, 128, 16, 0 },
			30000);
	}
	expect_none();
}

static void fused_attention_is_not(void **state)
{
	launches(20,
		(struct shape){ text("cudnn_generated_fort_native_sdpa_sm90_flash_fprop"), 132, 384,
			168, 0 },
		300000);
	expect_none();
}

static void a_norm_by_hand_is_found(void **state)
{
	const struct shape
		mean = { text("void at::native::reduce_kernel<512, 1, at::native::MeanOps>"), 9000,
			128, 16, 0 },
		centre = { text(POINTWISE "CUDAFunctor_add>"), 9000, 128, 16, 0 },
		root = { text(POINTWISE "rsqrt_kernel_cuda>"), 16, 128, 16, 0 },
		scale = { text(POINTWISE "mul>"), 9000, 128, 16, 0 };
	for (int i = 0; i < 20; i++) {
		launch(mean, 90000);
		launch(centre, 150000);
		launch(mean, 90000);
		launch(root, 3000);
		launch(scale, 150000);
		launch(scale, 150000);
	}
	expect_first("unfused-norm", 65, 80);
}

static void a_fused_norm_is_not(void **state)
{
	launches(20,
		(struct shape){ text("void at::native::vectorized_layer_norm_kernel<float>"), 16384,
			128, 32, 0 },
		150000);
	expect_none();
}

static void runs_of_short_kernels_over_the_same_are_found(void **state)
{
	const struct shape one = { text("scale"), 9000, 256, 16, 0 },
			   two = { text("add"), 9000, 256, 16, 0 },
			   three = { text("clamp"), 9000, 256, 16, 0 };
	for (int i = 0; i < 100; i++) {
		launch(one, 15000);
		launch(two, 15000);
		launch(three, 15000);
	}
	expect_first("small-kernels", 55, 95);
}

static void the_same_kernel_again_and_again_is_not(void **state)
{
	launches(300, (struct shape){ text("all"), 9000, 256, 16, 0 }, 15000);
	expect_none();
}

static void operators_one_by_one_are_found(void **state)
{
	const struct shape s = { text(POINTWISE "mul>"), 64, 128, 16, 0 },
			   g = { text("nvjet_sm90_hsh_64x64"), 64, 128, 16, 0 };
	for (int i = 0; i < 100; i++) {
		launch(s, 2000);
		host += 15000;
		launch(g, 4000);
		host += 15000;
	}
	expect_first("compile-candidate", 40, 75);
	assert_non_null(strstr(hint_advice(said, said->v.v[0].rule), "torch.compile"));
}

/* One kernel in ten is PyTorch's own, or nearly half are. */
static void launch_compiled(int own)
{
	const struct shape s = { text(POINTWISE "mul>"), 64, 128, 16, 0 },
			   t = { text("triton_poi_fused_add_mul_0"), 64, 128, 16, 0 };
	for (int i = 0; i < 400; i++) {
		launch(i % own ? t : s, 2000);
		host += 15000;
	}
	expect_first("launch-bound", 60, 95);
	assert_non_null(strstr(hint_advice(said, said->v.v[0].rule), "mode=\"reduce-overhead\""));
}

static void a_compiled_program_is_advised_of_graphs(void **state)
{
	launch_compiled(10);
}

static void so_is_one_that_is_compiled_in_part(void **state)
{
	launch_compiled(2);
}

static void others_are_advised_of_graphs_of_their_own(void **state)
{
	for (int i = 0; i < 500; i++) {
		launch((struct shape){ text("k"), 200, 256, 16, 0 }, 1500);
		host += 8000;
	}
	expect_first("launch-bound", 70, 90);
	assert_null(strstr(hint_advice(said, said->v.v[0].rule), "torch"));
}

static void a_name_that_is_cut_says_so(void **state)
{
	char name[200] = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_";
	memset(name + strlen(name), 'x', 100);
	const struct shape s = { text(name), 1024, 256, 200, 0 };
	launches(20, s, 2600000);
	expect_first("fp32-matmul", 75, 90);
	assert_string_equal(said->v.v[0].where + strlen(said->v.v[0].where) - 4, "x\u2026");
}

static void nothing_is_said_of_a_trace_without_device_times(void **state)
{
	for (int i = 0; i < 100; i++)
		call(FN_LAUNCH, 2500, 5, U(1), U(0), U(1), U(1), U(1));
	look();
	assert_int_equal(said->v.n, 0);
	assert_int_equal(said->counted_ns, 0);
}

static void hints_stand_by_gain(void **state)
{
	for (int i = 0; i < 50; i++) {
		launch((struct shape){ text("k"), 33, 256, 16, 0 }, 300000);
		launch((struct shape){ text("j"), 1000, 33, 16, 0 }, 300000);
	}
	look();
	assert_true(said->v.n >= 2);
	for (size_t i = 1; i < said->v.n; i++)
		assert_true(said->v.v[i - 1].gain >= said->v.v[i].gain);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(blocks_of_one_warp_leave_half_of_an_sm_empty),
		TEST(blocks_that_are_too_large_leave_a_part_empty),
		TEST(blocks_of_eight_warps_fill_an_sm),
		TEST(a_grid_smaller_than_the_device_leaves_sms_idle),
		TEST(devices_that_work_side_by_side_gain_what_one_does),
		TEST(a_block_for_each_sm_is_enough),
		TEST(a_small_grid_of_a_short_kernel_does_not_matter),
		TEST(one_block_too_many_costs_a_wave),
		TEST(half_empty_warps_are_found),
		TEST(registers_that_keep_a_block_out_are_found),
		TEST(shared_memory_that_keeps_a_block_out_is_found),
		TEST(a_cliff_is_found_as_one),
		TEST(barriers_that_keep_blocks_out_are_found),
		TEST(the_drivers_word_is_compared),
		TEST(kernels_of_libraries_are_left_alone),
		TEST(short_kernels_wait_for_their_launch),
		TEST(causes_are_parts_of_the_breakdown),
		TEST(kernels_in_graphs_do_not_wait),
		TEST(waiting_for_each_kernel_is_found),
		TEST(the_operator_that_waits_is_named),
		TEST(waiting_once_is_not),
		TEST(a_host_that_computes_is_found),
		TEST(a_long_idle_gap_that_came_up_once_is_start_up),
		TEST(what_comes_before_the_loop_does_not_count),
		TEST(idle_gaps_that_differ_from_step_to_step_count),
		TEST(allocating_in_the_loop_is_found),
		TEST(the_call_that_keeps_the_device_idle_is_named),
		TEST(streams_that_wait_for_the_default_stream_are_found),
		TEST(streams_that_do_not_wait_are_not),
		TEST(copies_of_pageable_memory_are_found),
		TEST(copies_of_pinned_memory_are_not),
		TEST(copies_between_kernels_are_found),
		TEST(results_that_are_copied_back_are_found),
		TEST(memory_that_grows_is_found),
		TEST(memory_in_pieces_is_found),
		TEST(memory_in_pieces_after_the_peak_is_not),
		TEST(memory_freed_in_one_piece_is_not),
		TEST(products_in_fp32_are_found),
		TEST(products_in_tf32_are_not),
		TEST(convolutions_in_fp32_are_found),
		TEST(a_training_in_tf32_is_advised_of_mixed_precision),
		TEST(a_training_in_bf16_is_not),
		TEST(layouts_that_change_for_each_convolution_are_found),
		TEST(layouts_that_hardly_take_time_are_not),
		TEST(convolutions_of_images_that_are_channels_last_are_not),
		TEST(large_half_products_may_do_with_eight_bits),
		TEST(products_in_eight_bits_are_done_already),
		TEST(a_training_is_not_advised_to_use_eight_bits),
		TEST(products_that_end_in_other_kernels_are_found),
		TEST(products_whose_other_kernels_hardly_take_time_are_not),
		TEST(a_training_s_products_are_not),
		TEST(attention_by_hand_is_found),
		TEST(products_and_softmaxes_by_chance_are_not),
		TEST(fused_attention_is_not),
		TEST(a_norm_by_hand_is_found),
		TEST(a_fused_norm_is_not),
		TEST(runs_of_short_kernels_over_the_same_are_found),
		TEST(the_same_kernel_again_and_again_is_not),
		TEST(operators_one_by_one_are_found),
		TEST(a_compiled_program_is_advised_of_graphs),
		TEST(so_is_one_that_is_compiled_in_part),
		TEST(others_are_advised_of_graphs_of_their_own),
		TEST(a_name_that_is_cut_says_so),
		TEST(nothing_is_said_of_a_trace_without_device_times),
		TEST(hints_stand_by_gain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
