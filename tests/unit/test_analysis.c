/*
 * The parts of the wall time, against a plain version that looks at each microsecond by itself. All
 * times here are microseconds from the beginning of the trace until they are written.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/radix.h"
#include "maker.h"
#include "report/report_make.h"
#include "trace/trace.h"

#define PATH     "analysis.weir"
#define ORIGIN   1000000ull /* of the maker's clock */
#define WALL_US  3000u
#define PAUSE_US 100u /* HOST_GAP_NS */

struct made_call {
	uint32_t start, end;
	uint16_t fn;
};

struct made_activity {
	uint32_t start, end, stream, call; /* call: number of the call, from 1; 0 none */
	uint16_t kind;
	bool nccl;
};

static struct maker *m;
static int thread;
static uint64_t ns_of(uint32_t us)
{
	return ORIGIN + us * 1000ull;
}

static void begin(void)
{
	m = maker_new(PATH, maker_schema, 1 << 20);
	thread = maker_thread(m, CHUNK_EVENTS, 7, 70, "main");
	const int names = maker_thread(m, CHUNK_META, 7, 0, "");
	maker_meta(m, names, META_STRING, ORIGIN, 1, (uint64_t[]){ 1 }, "axpy", 4, 4);
	maker_meta(m, names, META_STRING, ORIGIN, 1, (uint64_t[]){ 2 }, "ncclDevKernel_AllReduce",
		23, 23);
}

static void put_calls(const struct made_call *calls, size_t n)
{
	struct link *links = calloc(n + 1, sizeof *links);
	for (size_t i = 0; i < n; i++) {
		const struct made_call *c = &calls[i];
		const uint64_t dur = (c->end - c->start) * 1000ull;
		maker_put(m, thread,
			(struct record){ .ticks = ns_of(c->start),
				.dur = (uint32_t)dur,
				.fn = c->fn,
				.words = RECORD_WORDS + 5 },
			(uint64_t[5]){ 0 });
		links[i] = (struct link){ .correlation = i + 1,
			.ticks = ns_of(c->start),
			.dur = dur,
			.tid = 70,
			.fn = c->fn };
	}
	if (n)
		maker_chunk(m, CHUNK_LINKS, 7, 0, links, (uint32_t)(n * sizeof *links));
	free(links);
}

static void put_activity(const struct made_activity *activity, size_t n)
{
	struct gpu_activity *all = calloc(n, sizeof *all);
	for (size_t i = 0; i < n; i++) {
		const struct made_activity *w = &activity[i];
		all[i] = (struct gpu_activity){ .start_ns = ns_of(w->start),
			.end_ns = ns_of(w->end),
			.correlation = w->call,
			.name = w->kind == GPU_KERNEL ? 1 + w->nccl : 0,
			.stream = w->stream,
			.kind = w->kind,
			.valid = GPU_HAS_STREAM | (w->call ? GPU_HAS_CORRELATION : 0) };
	}
	maker_chunk(m, CHUNK_DEVICE, 7, 0, all, (uint32_t)(n * sizeof *all));
	free(all);
}

static struct trace *trace;
static struct report *report;

static const struct analysis *look(void)
{
	struct error err;
	maker_finish(m, ns_of(WALL_US), false);
	assert_int_equal(trace_open(PATH, &trace, &err), 0);
	assert_int_equal(report_make(trace, 1, FACETS_BUT_HINTS, &report, &err), 0);
	return &report->analysis;
}

static void end(void)
{
	report_free(report);
	trace_close(trace);
	unlink(PATH);
}

static uint64_t sum(const uint64_t *ns, int n)
{
	uint64_t all = 0;
	for (int i = 0; i < n; i++)
		all += ns[i];
	return all;
}

static bool active(const struct made_activity *w, uint32_t us)
{
	return w->start <= us && us < w->end;
}

/* The work whose beginning ends the idle gap at `us`: of several, the first that was made. */
static const struct made_activity *next_activity(
	const struct made_activity *activity, size_t n, uint32_t us)
{
	const struct made_activity *next = NULL;
	for (size_t i = 0; i < n; i++)
		if (activity[i].start > us && (!next || activity[i].start < next->start))
			next = &activity[i];
	return next;
}

static enum wall_part plain_host(const struct made_call *calls, size_t n, uint32_t us)
{
	const struct made_call *before = NULL, *after = NULL;
	for (size_t i = 0; i < n; i++) {
		if (calls[i].start <= us && us < calls[i].end)
			return calls[i].fn == FN_SYNC ? WALL_WAITING
			       : calls[i].fn == FN_ALLOC &&
					       calls[i].end - calls[i].start >= PAUSE_US
				       ? WALL_DRIVER
				       : WALL_LAUNCHING;
		if (calls[i].end <= us)
			before = &calls[i];
		else if (!after)
			after = &calls[i];
	}
	return before && after && after->start - before->end < PAUSE_US ? WALL_LAUNCHING
									: WALL_HOST;
}

static enum wall_part plain_part(const struct made_call *calls, size_t call_count,
	const struct made_activity *activity, size_t n, uint32_t us)
{
	bool computes = false, communicates = false, copies = false, ran = false;
	for (size_t i = 0; i < n; i++) {
		ran |= activity[i].start <= us;
		if (!active(&activity[i], us))
			continue;
		computes |= activity[i].kind == GPU_KERNEL && !activity[i].nccl;
		communicates |= activity[i].nccl;
		copies |= activity[i].kind == GPU_MEMCPY;
	}
	if (computes || communicates || copies)
		return computes ? WALL_COMPUTING : communicates ? WALL_COMMUNICATING : WALL_COPYING;
	const struct made_activity *next = next_activity(activity, n, us);
	if (!ran || !next)
		return ran ? WALL_AFTER : WALL_BEFORE;
	if (!next->call)
		return WALL_UNKNOWN;
	return us >= calls[next->call - 1].end ? WALL_QUEUED : plain_host(calls, call_count, us);
}

#define CALLS 40

static uint32_t below(uint64_t *seed, uint32_t n)
{
	*seed = hash_mix(*seed + 1);
	return (uint32_t)(*seed % n);
}

static size_t make_calls(uint64_t *seed, struct made_call *calls)
{
	static const uint16_t fns[] = { FN_LAUNCH, FN_LAUNCH, FN_LAUNCH, FN_SYNC, FN_ALLOC };
	uint32_t at = below(seed, 200);
	size_t n = 0;
	while (n < CALLS && at < WALL_US - 400) {
		struct made_call *c = &calls[n++];
		*c = (struct made_call){ .start = at, .fn = fns[below(seed, 5)] };
		c->end = at + 1 + below(seed, c->fn == FN_ALLOC ? 180 : 60);
		at = c->end + below(seed, below(seed, 4) ? 60 : 250);
	}
	return n;
}

static size_t make_activity(uint64_t *seed, const struct made_call *calls, size_t call_count,
	struct made_activity *activity)
{
	size_t n = 0;
	for (uint32_t i = 0; i < call_count; i++) {
		struct made_activity *w = &activity[n];
		if (calls[i].fn != FN_LAUNCH || !below(seed, 8))
			continue;
		n++;
		*w = (struct made_activity){ .start = calls[i].start + 1 + below(seed, 120),
			.stream = below(seed, 3),
			.call = below(seed, 9) ? i + 1 : 0,
			.kind = below(seed, 4) ? GPU_KERNEL : GPU_MEMCPY };
		w->end = w->start + below(seed, 90);
		w->nccl = w->kind == GPU_KERNEL && !below(seed, 4);
	}
	return n;
}

/* No two at one time: which of them ended the idle gap would be chance. */
static void part_starts(struct made_activity *activity, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (activity[k].start == activity[i].start) {
				activity[i].start++;
				activity[i].end++;
				k = (size_t)-1;
			}
}

static void every_microsecond_is_counted_where_it_belongs(void **state)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct made_call calls[CALLS];
		struct made_activity activity[CALLS];
		uint64_t s = seed, want[WALL_PARTS] = { 0 };
		const size_t call_count = make_calls(&s, calls);
		const size_t n = make_activity(&s, calls, call_count, activity);
		if (!n)
			continue;
		part_starts(activity, n);
		for (uint32_t us = 0; us < WALL_US; us++)
			want[plain_part(calls, call_count, activity, n, us)] += 1000;
		begin();
		put_calls(calls, call_count);
		put_activity(activity, n);
		const struct analysis *a = look();
		assert_true(a->known);
		for (int k = 0; k < WALL_PARTS; k++)
			if (a->wall_ns[k] != want[k])
				fail_msg("seed %d, %s: %d, not %d", (int)seed, wall_part_name[k],
					(int)a->wall_ns[k], (int)want[k]);
		assert_int_equal(sum(a->wall_ns, WALL_PARTS), report->wall_ns);
		assert_int_equal(sum(a->path_ns, PATH_PARTS), report->wall_ns);
		end();
	}
}

static void a_chain_of_work_in_a_stream_is_the_critical_path(void **state)
{
	const struct made_call calls[] = { { 100, 110, FN_LAUNCH }, { 110, 120, FN_LAUNCH },
		{ 120, 130, FN_LAUNCH }, { 130, 1500, FN_SYNC } };
	const struct made_activity activity[] = {
		{ 115, 600, 1, 1, GPU_KERNEL, false },
		{ 125, 300, 2, 2, GPU_KERNEL, false }, /* beside it: not on the path */
		{ 602, 1490, 1, 3, GPU_MEMCPY, false },
	};
	begin();
	put_calls(calls, 4);
	put_activity(activity, 3);
	const struct analysis *a = look();
	assert_int_equal(a->path_ns[PATH_COMPUTING], 485000);
	assert_int_equal(a->path_ns[PATH_COPYING], 888000);
	assert_int_equal(a->path_ns[PATH_QUEUE], 2000);
	assert_int_equal(a->path_ns[PATH_LAUNCH], 0);
	assert_int_equal(a->path_ns[PATH_BEFORE], 115000);
	assert_int_equal(a->path_ns[PATH_AFTER], (WALL_US - 1490) * 1000);
	end();
}

/* The host launches without a wait, and the last kernel just misses its turn: the path is the
 * host's, and yet a faster host would save little. */
static void a_path_through_the_host_has_slack_where_the_device_was_busy(void **state)
{
	struct made_call calls[10];
	struct made_activity activity[10];
	for (uint32_t i = 0; i < 10; i++) {
		calls[i] = (struct made_call){ 10 + i * 200, 200 + i * 200, FN_LAUNCH };
		activity[i] = (struct made_activity){ 210 + i * 200, 370 + i * 200, 1, i + 1,
			GPU_KERNEL, false };
	}
	begin();
	put_calls(calls, 10);
	put_activity(activity, 10);
	const struct analysis *a = look();
	const uint64_t host = a->path_ns[PATH_HOST] + a->path_ns[PATH_LAUNCH];
	/* A device needs a microsecond from kernel to kernel. */
	const uint64_t saved = (9 * 200 + 160 - 10 * 160 - 9) * 1000;
	assert_int_equal(a->path_ns[PATH_COMPUTING], 160000);
	assert_int_equal(a->path_host_most_ns, saved);
	assert_int_equal(host, saved);
	assert_int_equal(a->path_ns[PATH_OVERLAPPED], 1800000 - saved);
	end();
}

static void the_path_follows_a_wait_back_to_the_work_that_ended_it(void **state)
{
	const struct made_call calls[] = { { 0, 10, FN_LAUNCH }, { 10, 505, FN_SYNC },
		{ 700, 710, FN_LAUNCH } };
	const struct made_activity activity[] = {
		{ 20, 500, 1, 1, GPU_KERNEL, false },
		{ 715, WALL_US, 1, 3, GPU_KERNEL, false },
	};
	begin();
	put_calls(calls, 3);
	put_activity(activity, 2);
	const struct analysis *a = look();
	assert_int_equal(a->path_ns[PATH_COMPUTING], (480 + WALL_US - 715) * 1000);
	assert_int_equal(a->path_ns[PATH_WAITING], 5000);
	/* The device needs one of the 205 us between kernels of a stream. */
	assert_int_equal(a->path_ns[PATH_HOST], 204000);
	assert_int_equal(a->path_ns[PATH_OVERLAPPED], 1000);
	assert_int_equal(a->path_ns[PATH_BEFORE], 20000);
	assert_int_equal(a->path_ns[PATH_LAUNCH], 5 * 1000);
	end();
}

static void work_that_waits_for_another_stream_is_on_its_path(void **state)
{
	const struct made_call calls[] = { { 0, 10, FN_LAUNCH }, { 10, 20, FN_LAUNCH } };
	const struct made_activity activity[] = {
		{ 20, 1000, 1, 1, GPU_KERNEL, false },
		{ 1004, 2000, 2, 2, GPU_KERNEL, false },
	};
	begin();
	put_calls(calls, 2);
	put_activity(activity, 2);
	const struct analysis *a = look();
	assert_int_equal(a->path_ns[PATH_COMPUTING], (980 + 996) * 1000);
	assert_int_equal(a->path_ns[PATH_QUEUE], 4000);
	end();
}

static void the_queue_is_as_deep_as_what_was_asked_for_and_has_not_begun(void **state)
{
	const struct made_call calls[] = { { 0, 10, FN_LAUNCH }, { 10, 20, FN_LAUNCH },
		{ 20, 30, FN_LAUNCH } };
	const struct made_activity activity[] = {
		{ 40, 100, 1, 1, GPU_KERNEL, false },
		{ 100, 200, 1, 2, GPU_KERNEL, false },
		{ 200, 300, 1, 3, GPU_KERNEL, false },
	};
	begin();
	put_calls(calls, 3);
	put_activity(activity, 3);
	const struct analysis *a = look();
	assert_int_equal(a->queue.calls, 3);
	assert_int_equal(a->queue.depth_most, 3);
	assert_int_equal(a->queue.api_ns, 30000);
	assert_int_equal(a->queue.queued_ns, (30 + 80 + 170) * 1000);
	assert_int_equal(a->queue.span_ns, 200000);
	assert_true(a->queue.depth_mean == (10 + 20 + 60 + 120 + 100) / 200.0);
	assert_int_equal(a->queue.empty_ns, 0);
	end();
}

static void a_copy_beside_a_kernel_is_hidden(void **state)
{
	const struct made_activity activity[] = {
		{ 100, 300, 1, 0, GPU_KERNEL, false },
		{ 200, 400, 2, 0, GPU_MEMCPY, false },
		{ 350, 450, 3, 0, GPU_KERNEL, true },
	};
	begin();
	put_calls(NULL, 0);
	put_activity(activity, 3);
	const struct analysis *a = look();
	assert_int_equal(a->copy_ns, 200000);
	assert_int_equal(a->copy_hidden_ns, 100000);
	assert_int_equal(a->communication_ns, 100000);
	assert_int_equal(a->communication_hidden_ns, 0);
	assert_int_equal(a->wall_ns[WALL_COMPUTING], 200000);
	assert_int_equal(a->wall_ns[WALL_COPYING], 50000);
	assert_int_equal(a->wall_ns[WALL_COMMUNICATING], 100000);
	end();
}

static void the_longest_idle_gaps_come_first(void **state)
{
	struct made_activity activity[64];
	uint32_t at = 10;
	for (uint32_t i = 0; i < 64; i++) {
		activity[i] = (struct made_activity){ at, at + 1, 1, 0, GPU_KERNEL, false };
		at += 2 + (i * 7) % 61;
	}
	begin();
	put_calls(NULL, 0);
	put_activity(activity, 64);
	const struct analysis *a = look();
	assert_int_equal(a->idle_gaps.n, IDLE_GAPS_KEPT);
	assert_int_equal(a->idle_gaps.v[0].ns, 61000);
	for (size_t i = 1; i < a->idle_gaps.n; i++)
		assert_true(a->idle_gaps.v[i].ns <= a->idle_gaps.v[i - 1].ns);
	assert_string_equal(a->idle_gaps.v[0].began, "axpy");
	end();
}

/* The bound of a kernel that runs so often and so long, each after a launch that the host needed so
 * long for, of which the first had something run before it; all shorter than WALL_US. */
struct starving {
	uint32_t runs, us, gap_us;
	uint32_t gaps; /* so many of the runs, the last; the others follow each other */
};

static enum bound_class bound_by(struct starving s)
{
	struct made_call calls[128];
	struct made_activity activity[32];
	size_t n = 0, k = 0;
	uint32_t at = 21;
	calls[n++] = (struct made_call){ 10, 12, FN_LAUNCH };
	activity[k++] = (struct made_activity){ 20, 21, 1, (uint32_t)n, GPU_KERNEL, true };
	for (uint32_t i = 0; i < s.runs; i++) {
		const uint32_t start = at + (i >= s.runs - s.gaps ? s.gap_us : 0);
		for (; at + 10 < start; at += 50)
			calls[n++] = (struct made_call){ at, at + 5, FN_LAUNCH };
		calls[n++] = (struct made_call){ start - 2, start - 1, FN_LAUNCH };
		activity[k++] = (struct made_activity){ start, start + s.us, 1, (uint32_t)n,
			GPU_KERNEL, false };
		at = start + s.us;
	}
	begin();
	put_calls(calls, n);
	put_activity(activity, k);
	look();
	enum bound_class class = BOUND_UNKNOWN;
	for (size_t i = 0; i < report->activities.n; i++)
		if (!strcmp(report->activities.v[i].name, "axpy"))
			class = report->activities.v[i].roofline.class;
	end();
	return class;
}

static void a_kernel_is_bound_by_launches_when_most_of_its_executions_are(void **state)
{
	/* As a window shows it that has one execution. */
	assert_int_not_equal(bound_by((struct starving){ 1, 582, 900, 1 }), BOUND_LAUNCH);
	assert_int_equal(bound_by((struct starving){ 1, 30, 900, 1 }), BOUND_LAUNCH);
	assert_int_equal(bound_by((struct starving){ 4, 120, 400, 4 }), BOUND_LAUNCH);
	assert_int_equal(bound_by((struct starving){ 10, 6, 90, 10 }), BOUND_LAUNCH);
	assert_int_not_equal(bound_by((struct starving){ 10, 6, 900, 1 }), BOUND_LAUNCH);
}

static void a_trace_without_gpu_activities_has_no_breakdown(void **state)
{
	begin();
	put_calls((struct made_call[]){ { 0, 10, FN_LAUNCH } }, 1);
	assert_false(look()->known);
	end();
}

struct item {
	uint32_t before;
	uint64_t key;
	uint32_t order;
};

static void a_radix_sort_is_stable_and_sorts_by_all_bits(void **state)
{
	enum { N = 5000 };
	static struct item items[N];
	for (int bits = 1; bits <= 64; bits += 9) {
		for (uint32_t i = 0; i < N; i++)
			items[i] = (struct item){ i, hash_mix(i) >> (64 - bits), i };
		radix_sort(items, N, sizeof *items, offsetof(struct item, key), 8);
		for (uint32_t i = 1; i < N; i++)
			assert_true(items[i - 1].key < items[i].key ||
				    (items[i - 1].key == items[i].key &&
					    items[i - 1].order < items[i].order));
	}
	for (uint32_t i = 0; i < N; i++)
		items[i] = (struct item){ (uint32_t)hash_mix(i), 0, i };
	radix_sort(items, N, sizeof *items, offsetof(struct item, before), 4);
	for (uint32_t i = 1; i < N; i++)
		assert_true(items[i - 1].before <= items[i].before);
	radix_sort(NULL, 0, 8, 0, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_microsecond_is_counted_where_it_belongs),
		cmocka_unit_test(a_chain_of_work_in_a_stream_is_the_critical_path),
		cmocka_unit_test(a_path_through_the_host_has_slack_where_the_device_was_busy),
		cmocka_unit_test(the_path_follows_a_wait_back_to_the_work_that_ended_it),
		cmocka_unit_test(work_that_waits_for_another_stream_is_on_its_path),
		cmocka_unit_test(the_queue_is_as_deep_as_what_was_asked_for_and_has_not_begun),
		cmocka_unit_test(a_copy_beside_a_kernel_is_hidden),
		cmocka_unit_test(the_longest_idle_gaps_come_first),
		cmocka_unit_test(a_kernel_is_bound_by_launches_when_most_of_its_executions_are),
		cmocka_unit_test(a_trace_without_gpu_activities_has_no_breakdown),
		cmocka_unit_test(a_radix_sort_is_stable_and_sorts_by_all_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
