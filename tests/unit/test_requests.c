/* Causes of slow requests, on made timelines whose true cause the maker knows. */
#include "unit.h"

#include <unistd.h>

#include "hint/summary.h"
#include "maker.h"
#include "join/links.h"
#include "model/request_times.h"

#define PATH   "requests.weir"
#define PID    7
#define TID    71
#define ORIGIN 1000000u
#define MOST   64

enum { NAME_FAST = 1, NAME_SLOW, NAME_SCOPE, NAME_KERNEL };

/* One request's time, by part in us; its model's batch has it alone. */
struct made {
	uint32_t us[REQUEST_PARTS];
	uint32_t model, rows;
	enum request_part cause;
};

static struct maker *m;
static uint64_t now;
static struct served_request requests[MOST];
static struct range ranges[MOST];
static struct gpu_activity activities[4 * MOST];
static struct link links[2 * MOST];
static uint32_t n, activity_count, link_count;

static void begin(void)
{
	static const char *const names[] = { NULL, "fast", "slow", SERVED_SCOPE, "gemm" };
	m = maker_new(PATH, maker_schema, 1 << 20);
	const int meta = maker_thread(m, CHUNK_META, PID, 0, "");
	for (uint64_t i = 1; i < 5; i++)
		maker_meta(m, meta, META_STRING, ORIGIN, 1, &i, names[i],
			(uint32_t)strlen(names[i]), (uint32_t)strlen(names[i]));
	now = 2 * ORIGIN;
	n = activity_count = link_count = 0;
}

static void put_activity(uint16_t kind, uint64_t from, uint64_t to, uint64_t call)
{
	activities[activity_count++] = (struct gpu_activity){ .start_ns = from,
		.end_ns = to,
		.correlation = call,
		.name = NAME_KERNEL,
		.kind = kind,
		.valid = call ? GPU_HAS_CORRELATION : 0 };
}

/* The device is free when its request comes, or its queue time is that of the batch before it. */
static void put_batch(uint64_t from, uint64_t to, uint32_t model)
{
	ranges[n] = (struct range){ .ticks = from,
		.dur = to - from,
		.sequence = n + 1,
		.tid = TID,
		.name = model,
		.scope = NAME_SCOPE,
		.kind = RANGE_ANNOTATION,
		.valid = RANGE_HAS_SEQUENCE };
}

static void put_request(const struct made *a)
{
	struct served_request *q = &requests[n];
	const uint32_t *us = a->us;
	uint64_t *ns = q->ns;
	*q = (struct served_request){ .id = n + 1,
		.batch = n + 1,
		.model = a->model,
		.rows = a->rows,
		.batch_rows = a->rows,
		.outcome = REQUEST_ANSWERED };
	ns[REQUEST_BEGAN] = now;
	ns[REQUEST_READ] = now + us[PART_SOCKET] * 1000u;
	ns[REQUEST_QUEUED] = ns[REQUEST_READ] + us[PART_PARSE] * 1000u;
	ns[REQUEST_TAKEN] = ns[REQUEST_QUEUED] + us[PART_QUEUE] * 1000u;
	const uint64_t on = ns[REQUEST_ON_DEVICE] = ns[REQUEST_TAKEN] + us[PART_GATHER] * 1000u;
	const uint64_t call = on + 1, copied = on + us[PART_COPIES] * 1000u,
		       ran = copied + (us[PART_KERNELS] + us[PART_NEIGHBOURS]) * 1000u;
	ns[REQUEST_OFF_DEVICE] = ran + us[PART_ENGINE] * 1000u;
	ns[REQUEST_SENT] = ns[REQUEST_OFF_DEVICE] + us[PART_ANSWER] * 1000u;
	put_batch(ns[REQUEST_TAKEN], ns[REQUEST_OFF_DEVICE], a->model);
	links[link_count++] = (struct link){
		.correlation = n + 1, .ticks = call, .dur = 1, .tid = TID, .fn = FN_LAUNCH
	};
	put_activity(GPU_MEMCPY, on, copied, n + 1);
	put_activity(GPU_KERNEL, copied, ran, n + 1);
	if (us[PART_NEIGHBOURS])
		put_activity(GPU_KERNEL, copied, ran, 0);
	n++;
	now = ns[REQUEST_SENT] + 1000;
}

static struct trace *trace;
static struct meta meta;
static struct links joined;
static struct requests all;

static void look(void)
{
	struct error err;
	maker_chunk(m, CHUNK_REQUESTS, PID, 0, requests, n * (uint32_t)sizeof *requests);
	maker_chunk(m, CHUNK_RANGES, PID, TID, ranges, n * (uint32_t)sizeof *ranges);
	maker_chunk(
		m, CHUNK_DEVICE, PID, 0, activities, activity_count * (uint32_t)sizeof *activities);
	maker_chunk(m, CHUNK_LINKS, PID, 0, links, link_count * (uint32_t)sizeof *links);
	maker_finish(m, now + ORIGIN, false);
	assert_int_equal(trace_open(PATH, &trace, &err), 0);
	assert_int_equal(meta_load(trace, &meta, &err), 0);
	assert_int_equal(links_load(trace, &meta, &joined), 0);
	memset(&all, 0, sizeof all);
	assert_int_equal(requests_load(trace, &meta, &joined, &all), 0);
	assert_int_equal(all.v.n, n);
}

static void end(void)
{
	requests_fini(&all);
	links_fini(&joined);
	meta_fini(&meta);
	trace_close(trace);
	unlink(PATH);
}

static void check_sum(const struct request_row *q)
{
	uint64_t sum = 0;
	for (int i = 0; i < REQUEST_PARTS; i++)
		sum += q->part[i];
	assert_int_equal(sum, request_total(q));
}

static uint64_t seed = 28;
static uint32_t below(uint32_t most)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % most;
}

/* The usual batch, and one part of it that takes ten times as long. */
static struct made make(enum request_part cause)
{
	struct made a = { .model = NAME_FAST, .rows = 1 + below(3), .cause = cause };
	for (int i = 0; i < REQUEST_PARTS; i++)
		a.us[i] = 20 + below(2);
	a.us[PART_KERNELS] = 40;
	a.us[PART_NEIGHBOURS] = 0;
	a.us[cause] = 400 + below(100);
	return a;
}

static void the_longest_part_is_the_cause(void **state)
{
	for (int round = 0; round < 20; round++) {
		struct made made[MOST];
		begin();
		for (uint32_t i = 0; i < MOST; i++) {
			/* Most are usual, so that the others are not. */
			const bool slow = i % 8 == 7;
			made[i] =
				make(slow ? (enum request_part)below(REQUEST_PARTS) : PART_KERNELS);
			if (!slow)
				made[i].us[PART_KERNELS] = 40;
			put_request(&made[i]);
		}
		look();
		for (uint32_t i = 0; i < n; i++) {
			check_sum(&all.v.v[i]);
			assert_int_equal(all.v.v[i].q.id, i + 1);
			if (request_cause(&all.v.v[i]) != made[i].cause)
				fail_msg("round %d, request %u: %s in place of %s", round, i + 1,
					request_part_name(request_cause(&all.v.v[i])),
					request_part_name(made[i].cause));
		}
		end();
	}
}

static void work_of_others_costs_no_more_than_the_batch_was_slower(void **state)
{
	begin();
	for (int i = 0; i < 9; i++) {
		struct made a = { .model = NAME_FAST, .rows = 1 };
		a.us[PART_KERNELS] = 100;
		a.us[PART_NEIGHBOURS] = i == 4 ? 30 : 0;
		put_request(&a);
	}
	look();
	assert_int_equal(all.v.v[4].part[PART_NEIGHBOURS], 30000);
	assert_int_equal(all.v.v[4].part[PART_KERNELS], 100000);
	assert_int_equal(all.v.v[3].part[PART_NEIGHBOURS], 0);
	assert_int_equal(all.batches.v[4].beside_ns, 130000);
	end();
}

static void a_request_was_behind_what_ran_while_it_was_queued(void **state)
{
	struct made slow = { .model = NAME_SLOW, .rows = 1 },
		    fast = { .model = NAME_FAST, .rows = 1 };
	struct behinds behind = { 0 };
	slow.us[PART_KERNELS] = 500;
	fast.us[PART_KERNELS] = 50;
	begin();
	put_request(&slow);
	put_request(&slow);
	put_request(&fast);
	/* It came when the first of the slow ones had run for 100 us. */
	const uint64_t came = requests[0].ns[REQUEST_ON_DEVICE] + 100000;
	for (int i = REQUEST_BEGAN; i <= REQUEST_QUEUED; i++)
		requests[2].ns[i] = came;
	look();
	const struct request_row *q = &all.v.v[1]; /* by first byte */
	assert_int_equal(q->q.id, 3);
	request_behind(&all, q, &behind);
	assert_int_equal(behind.v.n, 1);
	assert_int_equal(behind.v.v[0].batches, 2);
	assert_int_equal(behind.v.v[0].ns, 900000);
	assert_string_equal(meta.names.v[behind.v.v[0].model].text, "slow");
	assert_int_equal(request_cause(q), PART_QUEUE);
	check_sum(q);
	array_free(&behind.v);
	end();
}

static void one_that_was_shed_spent_its_time_in_the_queue(void **state)
{
	struct made a = { .model = NAME_FAST, .rows = 1 };
	a.us[PART_KERNELS] = 100;
	a.us[PART_SOCKET] = 5;
	begin();
	put_request(&a);
	put_request(&a);
	struct served_request *q = &requests[1];
	q->ns[REQUEST_TAKEN] = q->ns[REQUEST_ON_DEVICE] = q->ns[REQUEST_OFF_DEVICE] = 0;
	q->batch = 0;
	q->outcome = REQUEST_SHED;
	look();
	assert_int_equal(all.v.v[1].part[PART_QUEUE], 100000);
	assert_int_equal(all.v.v[1].batch, BATCH_NONE);
	check_sum(&all.v.v[1]);
	end();
}

/* Most were shed at once, and say nothing of how long an answer takes. */
static void the_summary_is_of_requests_that_were_answered(void **state)
{
	struct made a = { .model = NAME_FAST, .rows = 1 };
	struct summary said;
	a.us[PART_KERNELS] = 100;
	begin();
	for (uint32_t i = 0; i < MOST; i++) {
		put_request(&a);
		struct served_request *q = &requests[i];
		if (i % 4 == 0)
			continue;
		q->ns[REQUEST_TAKEN] = q->ns[REQUEST_ON_DEVICE] = q->ns[REQUEST_OFF_DEVICE] = 0;
		q->ns[REQUEST_SENT] = q->ns[REQUEST_QUEUED] + 1000;
		q->batch = 0;
		q->outcome = REQUEST_SHED;
	}
	look();
	summary_make(&(struct report){ .requests = &all }, &said);
	assert_string_equal(said.text[0],
		"The server answered 16 of 64 requests. Their median time was 100 us, the p99 100 us.");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_part_is_the_cause),
		cmocka_unit_test(work_of_others_costs_no_more_than_the_batch_was_slower),
		cmocka_unit_test(a_request_was_behind_what_ran_while_it_was_queued),
		cmocka_unit_test(one_that_was_shed_spent_its_time_in_the_queue),
		cmocka_unit_test(the_summary_is_of_requests_that_were_answered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
