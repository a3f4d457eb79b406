/* Several recordings read as one: their clocks, devices, processes and headers. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "maker.h"
#include "report/report_make.h"
#include "trace/activity.h"
#include "trace/meta.h"
#include "trace/part.h"
#include "trace/merge.h"

#define START 1000000u /* what maker_new() begins with; a tick is a nanosecond */
#define CALLS 4u

struct rank {
	const char *file, *host;
	uint64_t start_ticks; /* at START nanoseconds */
	uint64_t real_later;  /* than the first one's */
	uint64_t end_ticks;   /* as many nanoseconds: so ticks are known as nanoseconds */
	uint64_t uuid;
	uint32_t pid;
};

/* Launches 1000 ticks apart, of 100 each, and an activity of 100 ns at the begin of each. */
static void make(const struct rank *k)
{
	struct maker *m = maker_new(k->file, maker_schema, TRACE_GRAIN);
	const uint64_t launch[LAUNCH_WORDS] = { 0x10, 7, 1 | 1ull << 32, 1 | 32ull << 32,
		1 | 1ull << 32 };
	const uint64_t device[4] = { 0, 1 << 30, 132, 9 << 16 }, uuid[3] = { 0, k->uuid, 1 };
	struct gpu_activity w[CALLS];
	m->header.start = (struct clock_pair){ k->start_ticks, START,
		m->header.start.real_ns + k->real_later };
	snprintf(m->header.host, sizeof m->header.host, "%s", k->host);
	m->header.root_pid = k->pid;
	m->header.clock = k->start_ticks == START ? CLOCK_IS_MONOTONIC : CLOCK_IS_TSC;
	const int meta = maker_thread(m, CHUNK_META, k->pid, 0, "");
	maker_meta(m, meta, META_DEVICE, k->start_ticks, 4, device, "H200", 4, 4);
	maker_meta(m, meta, META_UUID, k->start_ticks, 3, uuid, "", 0, 0);
	const int t = maker_thread(m, CHUNK_EVENTS, k->pid, k->pid + 1, "main");
	for (uint32_t i = 0; i < CALLS; i++) {
		maker_put(m, t,
			(struct record){ .ticks = k->start_ticks + i * 1000,
				.dur = 100,
				.fn = FN_LAUNCH,
				.words = RECORD_WORDS + LAUNCH_WORDS },
			launch);
		w[i] = (struct gpu_activity){ .start_ns = START + i * 1000,
			.end_ns = START + i * 1000 + 100,
			.valid = GPU_HAS_DEVICE,
			.kind = GPU_KERNEL };
	}
	maker_chunk(m, CHUNK_DEVICE, k->pid, 0, w, sizeof w);
	maker_finish(m, k->end_ticks, false);
}

static struct trace *open_rank(const struct rank *k)
{
	struct trace *t = NULL;
	struct error err;
	make(k);
	if (trace_open(k->file, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static struct trace *together(const struct rank *a, const struct rank *b)
{
	struct trace *t = open_rank(a), *other = open_rank(b);
	struct error err;
	if (trace_take_in(t, other, b->file, &err))
		fail_msg("%s", err.text);
	return t;
}

/* The calls, and the activities by device, of one process. */
struct seen {
	uint64_t calls, call[8], dur, activities, start[8];
	uint32_t device;
};

static struct seen seen_of(const struct trace *t, uint32_t process)
{
	struct seen s = { 0 };
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = t, .buf = &buf };
	struct gpu_activity w;
	for (size_t chunk = 0; trace_next(t, CHUNK_EVENTS, &chunk, &buf, NULL) > 0;) {
		struct records it = records_of(&buf);
		for (const struct record *r;
			buf.ref->process == process && (r = records_next(&it));) {
			s.call[s.calls++ % 8] = r->ticks;
			s.dur = r->dur;
		}
	}
	while (trace_next_activity(&at, &w) > 0)
		if (buf.ref->process == process) {
			s.start[s.activities++ % 8] = w.start_ns;
			s.device = w.device;
		}
	chunk_buf_fini(&buf);
	return s;
}

static const struct rank first = { "test_merge.0", "testhost", START, 0, 3 * START, 1, 100 };

static void check_at(const struct seen *s, uint64_t ticks, uint64_t each, uint64_t ns)
{
	assert_int_equal(s->calls, CALLS);
	assert_int_equal(s->activities, CALLS);
	assert_int_equal(s->dur, each / 10);
	for (uint32_t i = 0; i < CALLS; i++) {
		assert_int_equal(s->call[i], ticks + i * each);
		assert_int_equal(s->start[i], ns + i * 1000);
	}
}

static void one_host_has_one_clock(void **state)
{
	const struct rank second = { "test_merge.1", "testhost", START, 100, 3 * START, 2, 200 };
	struct trace *t = together(&first, &second);
	const struct seen a = seen_of(t, 0), b = seen_of(t, 1);
	check_at(&a, START, 1000, START);
	check_at(&b, START, 1000, START);
	assert_int_equal(t->processes.n, 2);
	assert_int_equal(t->processes.v[1].pid, 200);
	assert_string_equal(t->header.host, "testhost");
	trace_close(t);
}

/* The other began half a millisecond later by the time of day, and is as much later here. */
static void hosts_are_put_side_by_side_by_the_time_of_day(void **state)
{
	const struct rank second = { "test_merge.1", "other", START, 500000, 3 * START, 2, 100 };
	struct trace *t = together(&first, &second);
	const struct seen a = seen_of(t, 0), b = seen_of(t, 1);
	check_at(&a, START, 1000, START);
	check_at(&b, START + 500000, 1000, START + 500000);
	assert_int_equal(t->header.end.mono_ns, 3 * START + 500000);
	assert_string_equal(t->header.host, "several hosts");
	trace_close(t);
}

/* A tick of the other is two nanoseconds: from 2 000 000 ticks at 1 000 000 ns to 3 000 000 at as
 * many. */
static void ticks_of_another_rate_are_converted(void **state)
{
	const struct rank second = { "test_merge.1", "other", 2 * START, 500000, 3 * START, 2,
		100 };
	struct trace *t = together(&first, &second);
	const struct seen b = seen_of(t, 1);
	check_at(&b, START + 500000, 2000, START + 500000);
	trace_close(t);
}

static void devices_are_told_apart_by_their_uuids(void **state)
{
	const struct rank same = { "test_merge.1", "testhost", START, 0, 3 * START, 1, 200 };
	const struct rank another = { "test_merge.2", "testhost", START, 0, 3 * START, 2, 300 };
	struct error err;
	struct trace *t = together(&first, &same), *other = open_rank(&another);
	struct meta m = { 0 };
	assert_int_equal(trace_take_in(t, other, another.file, &err), 0);
	assert_int_equal(seen_of(t, 0).device, 0);
	assert_int_equal(seen_of(t, 1).device, 0);
	assert_int_equal(seen_of(t, 2).device, 1);
	assert_int_equal(meta_load(t, &m, &err), 0);
	assert_int_equal(m.devices.n, 3);
	assert_int_equal(m.devices.v[2].device, 1);
	meta_fini(&m);
	trace_close(t);
}

static void a_report_is_of_all(void **state)
{
	const struct rank second = { "test_merge.1", "other", START, 500000, 3 * START, 2, 100 };
	struct trace *t = together(&first, &second);
	struct report *r = NULL;
	struct error err;
	assert_int_equal(report_make(t, 1, FACETS_BUT_HINTS, &r, &err), 0);
	assert_int_equal(r->calls, 2 * CALLS);
	assert_int_equal(r->launches, 2 * CALLS);
	assert_int_equal(r->device_kernels, 2 * CALLS);
	assert_int_equal(r->devices.n, 2);
	assert_int_equal(r->wall_ns, 2 * START + 500000);
	report_free(r);
	trace_close(t);
}

static void a_part_of_all_is_read(void **state)
{
	const struct rank second = { "test_merge.1", "other", START, 500000, 3 * START, 2, 100 };
	struct trace *t = together(&first, &second);
	const struct trace_cut cut = { .after_ns = 400000 };
	struct error err;
	assert_int_equal(trace_cut(t, &cut, &err), 0);
	assert_int_equal(seen_of(t, 0).calls, 0);
	assert_int_equal(seen_of(t, 1).calls, CALLS);
	assert_int_equal(seen_of(t, 1).call[0], START + 500000);
	trace_close(t);
}

static void what_does_not_fit_is_refused_and_stays(void **state)
{
	struct trace *t = open_rank(&first), *other = NULL;
	struct error err;
	struct maker *m = maker_new("test_merge.1", "1 driver other call cuInit()\n", TRACE_GRAIN);
	m->header.root_pid = 7;
	maker_finish(m, 3 * START, false);
	assert_int_equal(trace_open("test_merge.1", &other, &err), 0);
	assert_int_equal(trace_take_in(t, other, "test_merge.1", &err), -EINVAL);
	assert_non_null(strstr(err.text, "different versions of Weir"));
	assert_int_equal(seen_of(t, 0).calls, CALLS);
	trace_close(other);
	trace_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_host_has_one_clock),
		cmocka_unit_test(hosts_are_put_side_by_side_by_the_time_of_day),
		cmocka_unit_test(ticks_of_another_rate_are_converted),
		cmocka_unit_test(devices_are_told_apart_by_their_uuids),
		cmocka_unit_test(a_report_is_of_all),
		cmocka_unit_test(a_part_of_all_is_read),
		cmocka_unit_test(what_does_not_fit_is_refused_and_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
