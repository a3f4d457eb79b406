/* libweirapi without weir run around it, and its half in the injected library that needs no
 * program. */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hook/sched/request_table.h"
#include "share/quota.h"
#include "weir/sched.h"

static char directory[64];
static const uint8_t uuid[16] = { 7 };

static int make_directory(void **state)
{
	strcpy(directory, "/tmp/weir-client.XXXXXX");
	return !mkdtemp(directory);
}

static int remove_directory(void **state)
{
	char path[96];
	snprintf(path, sizeof path, "%s/sched", directory);
	unlink(path);
	return rmdir(directory);
}

static struct share_file *make_file(void)
{
	const char *why = NULL;
	struct share_file *f = share_open(directory, &why);
	assert_non_null(f);
	return f;
}

static weir_sched open_handle(void)
{
	weir_sched h = 0;
	assert_int_equal(weir_sched_open(directory, &h), WEIR_OK);
	assert_int_not_equal(h, 0);
	return h;
}

static void each_function_says_what_it_cannot_do(void **state)
{
	char name[17];
	size_t count;
	uint32_t there = 99;
	uint64_t request = 99;
	struct weir_sched_config c = { .size = sizeof c, .set = WEIR_SET_CLASS, .sched_class = 1 };
	struct weir_sched_metrics m = { .size = sizeof m };
	struct weir_sched_memory held = { .size = sizeof held };
	weir_sched h = open_handle();
	assert_int_equal(weir_sched_get_state(h, &there), WEIR_OK);
	assert_int_equal(there, 0);
	assert_int_equal(weir_sched_configure(h, &c), WEIR_ERROR_NOT_SCHEDULED);
	c.set = WEIR_SET_BUDGET;
	assert_int_equal(weir_sched_configure(h, &c), WEIR_ERROR_NO_FILE);
	assert_int_equal(weir_sched_get_config(h, &c), WEIR_ERROR_NO_FILE);
	assert_int_equal(weir_sched_set_policy(h, "strict"), WEIR_ERROR_NO_FILE);
	assert_int_equal(weir_sched_get_policy(h, name, sizeof name), WEIR_ERROR_NO_FILE);
	assert_int_equal(weir_sched_request_begin(h, 0, &request), WEIR_ERROR_NOT_SCHEDULED);
	assert_int_equal(request, 0);
	assert_int_equal(weir_sched_request_end(h, 1), WEIR_ERROR_NOT_SCHEDULED);
	assert_int_equal(weir_sched_get_metrics(h, 0, &m), WEIR_ERROR_NOT_SCHEDULED);
	assert_int_equal(weir_sched_get_metrics(h, 1, &m), WEIR_ERROR_NO_FILE);
	assert_int_equal(weir_sched_get_memory(h, 0, 0, &held), WEIR_ERROR_NOT_SCHEDULED);
	assert_int_equal(weir_sched_get_memory(h, 1, 0, &held), WEIR_ERROR_NO_FILE);
	assert_int_equal(weir_sched_get_processes(h, NULL, 0, &count), WEIR_ERROR_NO_FILE);
	assert_int_equal(weir_sched_record(h, "on"), WEIR_ERROR_NOT_RECORDED);
	assert_int_equal(weir_sched_close(h), WEIR_OK);
}

static void opening_makes_nothing(void **state)
{
	weir_sched h;
	char path[96];
	snprintf(path, sizeof path, "%s/none", directory);
	assert_int_equal(weir_sched_open(path, &h), WEIR_OK);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(weir_sched_close(h), WEIR_OK);
	assert_int_equal(weir_sched_open("", &h), WEIR_ERROR_ARGUMENT);
}

static void each_status_has_a_text(void **state)
{
	for (int i = WEIR_OK; i <= WEIR_ERROR_DRIVER; i++)
		assert_null(strstr(weir_sched_strerror(i), "no such status"));
	assert_non_null(strstr(weir_sched_strerror(WEIR_ERROR_DRIVER + 1), "no such status"));
	assert_non_null(strstr(weir_sched_strerror(-1), "no such status"));
	assert_int_equal(weir_sched_version(), WEIR_SCHED_VERSION);
}

static void what_is_null_or_wrong_is_refused(void **state)
{
	char name[17];
	void *stream = name;
	struct share_file *f = make_file();
	struct weir_sched_config c = { .size = sizeof c };
	weir_sched h = open_handle();
	assert_int_equal(weir_sched_open(directory, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_get_state(h, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_configure(h, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_get_config(h, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_set_policy(h, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_get_policy(h, NULL, 17), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_get_policy(h, name, 1), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_request_begin(h, 0, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_get_metrics(h, 1, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_get_memory(h, 1, 0, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_get_processes(h, NULL, 1, &(size_t){ 0 }), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_get_processes(h, NULL, 0, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_set_log_level(h, 3), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_record(h, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_stream_get(h, 3, &stream), WEIR_ERROR_ARGUMENT);
	assert_null(stream);
	assert_int_equal(weir_sched_stream_get(h, 1, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_stream_return(h, NULL), WEIR_ERROR_ARGUMENT);
	assert_int_equal(weir_sched_stream_return(h, &c), WEIR_ERROR_ARGUMENT);
	for (c.set = 64; c.set; c.set <<= 1)
		assert_int_equal(weir_sched_configure(h, &c), WEIR_ERROR_ARGUMENT);
	weir_sched_close(h);
	share_close(f);
}

static void settings_that_contradict_each_other_are_refused(void **state)
{
	static const struct weir_sched_config wrong[] = {
		{ .set = WEIR_SET_CLASS, .sched_class = 3 },
		{ .set = WEIR_SET_CLASS },
		{ .set = WEIR_SET_THROUGHPUT, .throughput = 2 },
		{ .set = WEIR_SET_THROUGHPUT | WEIR_SET_CLASS, .throughput = 1, .sched_class = 1 },
		{ .set = WEIR_SET_THROUGHPUT | WEIR_SET_CLASS, .throughput = 0, .sched_class = 2 },
		{ .set = WEIR_SET_THROUGHPUT | WEIR_SET_DEADLINE,
			.throughput = 1,
			.deadline_us = 1 },
		{ .set = WEIR_SET_BUDGET, .budget_us = UINT64_MAX },
		{ .set = WEIR_SET_PREEMPTION, .preemption = 3 },
	};
	weir_sched h = open_handle();
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		struct weir_sched_config c = wrong[i];
		c.size = sizeof c;
		assert_int_equal(weir_sched_configure(h, &c), WEIR_ERROR_ARGUMENT);
	}
	struct weir_sched_config c = {
		.size = sizeof c, .set = WEIR_SET_PREEMPTION, .preemption = WEIR_PREEMPTION_KERNELS
	};
	assert_int_equal(weir_sched_configure(h, &c), WEIR_ERROR_UNSUPPORTED);
	weir_sched_close(h);
}

/* Built programs have these sizes in them, and hand them over. */
static void structures_have_the_size_that_they_had(void **state)
{
	assert_int_equal(sizeof(struct weir_sched_config), 48);
	assert_int_equal(sizeof(struct weir_sched_metrics), 120);
	assert_int_equal(sizeof(struct weir_sched_memory), 144);
}

/* A later version of a structure has more members: they may be 0, and are read as 0. */
static void structures_may_be_of_later_versions(void **state)
{
	struct share_file *f = make_file();
	struct {
		struct weir_sched_config c;
		char more[16];
	} later = { .c = { .size = sizeof later, .set = WEIR_SET_BUDGET, .budget_us = 5 } };
	weir_sched h = open_handle();
	assert_int_equal(weir_sched_configure(h, &later.c), WEIR_OK);
	later.more[15] = 1;
	assert_int_equal(weir_sched_configure(h, &later.c), WEIR_ERROR_SIZE);
	assert_int_equal(weir_sched_get_config(h, &later.c), WEIR_OK);
	assert_int_equal(later.more[15], 0);
	assert_int_equal(later.c.size, sizeof later);
	assert_int_equal(later.c.budget_us, 5);
	static const size_t sizes[] = { 0, 1, sizeof later.c - 1, SIZE_MAX };
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		struct weir_sched_metrics m = { .size = sizes[i] };
		later.c.size = sizes[i];
		assert_int_equal(weir_sched_configure(h, &later.c), WEIR_ERROR_SIZE);
		assert_int_equal(weir_sched_get_config(h, &later.c), WEIR_ERROR_SIZE);
		struct weir_sched_memory held = { .size = sizes[i] };
		assert_int_equal(weir_sched_get_metrics(h, 1, &m), WEIR_ERROR_SIZE);
		assert_int_equal(weir_sched_get_memory(h, 1, 0, &held), WEIR_ERROR_SIZE);
	}
	weir_sched_close(h);
	f->tuning.budget_ns = 0;
	share_close(f);
}

static void a_closed_handle_stays_invalid(void **state)
{
	uint32_t there;
	weir_sched h = open_handle(), other;
	assert_int_equal(weir_sched_close(h), WEIR_OK);
	other = open_handle(); /* in the same place */
	assert_int_not_equal(h, other);
	assert_int_equal(weir_sched_close(h), WEIR_ERROR_HANDLE);
	assert_int_equal(weir_sched_get_state(h, &there), WEIR_ERROR_HANDLE);
	assert_int_equal(weir_sched_get_state(other, &there), WEIR_OK);
	assert_int_equal(weir_sched_get_state(0, &there), WEIR_ERROR_HANDLE);
	assert_int_equal(weir_sched_get_state(UINT64_MAX, &there), WEIR_ERROR_HANDLE);
	assert_int_equal(weir_sched_close(other), WEIR_OK);
}

static void handles_are_limited(void **state)
{
	weir_sched h[16], more = 9;
	for (int i = 0; i < 16; i++)
		h[i] = open_handle();
	assert_int_equal(weir_sched_open(directory, &more), WEIR_ERROR_LIMIT);
	assert_int_equal(more, 0);
	for (int i = 0; i < 16; i++)
		assert_int_equal(weir_sched_close(h[i]), WEIR_OK);
}

static weir_sched contested;

static void *use(void *argument)
{
	char name[17];
	uint32_t used = 0;
	while (!weir_sched_get_policy(contested, name, sizeof name))
		used++;
	return (void *)(uintptr_t)used;
}

static void a_handle_may_be_closed_while_others_use_it(void **state)
{
	struct share_file *f = make_file();
	for (int round = 0; round < 50; round++) {
		pthread_t t[2];
		contested = open_handle();
		for (int i = 0; i < 2; i++)
			assert_false(pthread_create(&t[i], NULL, use, NULL));
		assert_int_equal(weir_sched_close(contested), WEIR_OK);
		for (int i = 0; i < 2; i++)
			assert_false(pthread_join(t[i], NULL));
	}
	share_close(f);
}

static void a_child_has_its_parents_handles(void **state)
{
	int status;
	char name[17];
	struct share_file *f = make_file();
	weir_sched h = open_handle();
	const pid_t pid = fork();
	if (!pid)
		_exit(weir_sched_get_policy(h, name, sizeof name) || weir_sched_close(h));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(weir_sched_get_policy(h, name, sizeof name), WEIR_OK);
	assert_int_equal(weir_sched_close(h), WEIR_OK);
	share_close(f);
}

static void what_is_of_all_programs_is_in_the_file(void **state)
{
	char name[17];
	struct share_file *f = make_file();
	struct weir_sched_config c = { .size = sizeof c,
		.set = WEIR_SET_PREEMPTION | WEIR_SET_BUDGET,
		.preemption = WEIR_PREEMPTION_OFF,
		.budget_us = 250 };
	weir_sched h = open_handle();
	assert_int_equal(weir_sched_configure(h, &c), WEIR_OK);
	assert_int_equal(f->arbiter.open, 1);
	assert_int_equal(f->tuning.budget_ns, 250000);
	memset((char *)&c + sizeof c.size, 0xff, sizeof c - sizeof c.size);
	assert_int_equal(weir_sched_get_config(h, &c), WEIR_OK);
	assert_int_equal(c.set, WEIR_SET_PREEMPTION | WEIR_SET_BUDGET);
	assert_int_equal(c.preemption, WEIR_PREEMPTION_OFF);
	assert_int_equal(c.budget_us, 250);
	assert_int_equal(c.deadline_us, 0);
	assert_int_equal(weir_sched_set_policy(h, "edf"), WEIR_OK);
	assert_string_equal(f->arbiter.policy, "edf");
	assert_int_equal(weir_sched_set_policy(h, "fastest"), WEIR_ERROR_NOT_FOUND);
	assert_int_equal(weir_sched_get_policy(h, name, sizeof name), WEIR_OK);
	assert_string_equal(name, "edf");
	/* Nothing of it is done when something can't be. */
	c.set = WEIR_SET_PREEMPTION | WEIR_SET_CLASS;
	c.preemption = WEIR_PREEMPTION_LAUNCHES;
	c.sched_class = WEIR_CLASS_LATENCY;
	assert_int_equal(weir_sched_configure(h, &c), WEIR_ERROR_NOT_SCHEDULED);
	assert_int_equal(f->arbiter.open, 1);
	f->arbiter.open = 0;
	weir_sched_close(h);
	share_close(f);
}

static void metrics_are_what_the_slot_says(void **state)
{
	const struct share_self self = { .class = CLASS_BEST_EFFORT, .who.weight = 1 };
	struct weir_sched_metrics m = { .size = sizeof m };
	struct share_file *f = make_file();
	weir_sched h = open_handle();
	uint32_t pids[2] = { 0 };
	size_t count = 0;
	const uint32_t pid = (uint32_t)getpid();
	assert_int_equal(weir_sched_get_metrics(h, pid, &m), WEIR_ERROR_NOT_FOUND);
	const uint32_t i = share_claim(f, share_device(f, uuid, 132), &self);
	struct share_slot *s = &f->slots[i];
	assert_int_equal(weir_sched_get_metrics(h, pid, &m), WEIR_OK);
	assert_int_equal(m.valid, 0);
	s->counts.waits = 4;
	s->counts.waited_ns = 4000;
	s->counts.measured_ns = 1000;
	s->counts.off_ns = 250;
	s->work.retired_ns = 77;
	for (int k = 0; k < 100; k++)
		share_count(s->counts.request, k < 95 ? 1000 : 1000000);
	assert_int_equal(weir_sched_get_metrics(h, pid, &m), WEIR_OK);
	assert_int_equal(m.sched_class, WEIR_CLASS_BEST_EFFORT);
	assert_int_equal(m.valid, WEIR_VALID_QUEUE_WAIT | WEIR_VALID_RESIDENCY |
					  WEIR_VALID_PREDICTION | WEIR_VALID_REQUESTS);
	assert_int_equal(m.queue_wait_mean_ns, 1000);
	assert_true(m.predicted_residency_share == 1 && m.prediction_error == 0.25);
	assert_int_equal(m.request_count, 100);
	assert_in_range(m.request_p50_ns, 850, 1150);
	assert_in_range(m.request_p95_ns, 850, 1150);
	assert_in_range(m.request_p99_ns, 850000, 1150000);
	assert_int_equal(weir_sched_get_processes(h, pids, 2, &count), WEIR_OK);
	assert_int_equal(count, 1);
	assert_int_equal(pids[0], pid);
	assert_int_equal(weir_sched_get_processes(h, NULL, 0, &count), WEIR_OK);
	assert_int_equal(count, 1);
	share_release(f, i);
	weir_sched_close(h);
	share_close(f);
}

/* On two devices, of which the first has a context. */
static void memory_is_what_the_slots_say(void **state)
{
	const uint64_t MiB = 1 << 20;
	const _Atomic uint32_t held[SHARE_WORDS] = { 3 };
	const struct share_self self = { .class = CLASS_BEST_EFFORT,
		.who.weight = 1,
		.held = held,
		.quota = 100 * MiB,
		.group = 5 };
	struct weir_sched_memory m = { .size = sizeof m };
	struct share_file *f = make_file();
	weir_sched h = open_handle();
	const uint32_t pid = (uint32_t)getpid(), d = share_device(f, uuid, 132);
	assert_int_equal(weir_sched_get_memory(h, pid, 0, &m), WEIR_ERROR_NOT_FOUND);
	const uint32_t one = share_claim(f, d, &self);
	const uint32_t two = share_claim(f, share_device(f, (uint8_t[16]){ 8 }, 132), &self);
	struct share_memory *own = &f->slots[one].memory;
	own->idle = 3 * MiB;
	own->spare = 8 * MiB;
	own->given = 16 * MiB;
	own->wanted = 24 * MiB;
	own->contexts = 1;
	own->hits = 7;
	for (int i = 0; i < 100; i++)
		share_count(own->took, i < 98 ? 1000 : 5000000);
	f->devices[d].who.context_bytes = 10 * MiB;
	assert_int_equal(quota_take(f, one, 20 * MiB), QUOTA_GRANTED);
	assert_int_equal(quota_take(f, one, 71 * MiB), QUOTA_REFUSED);
	assert_int_equal(quota_take(f, two, 95 * MiB), QUOTA_GRANTED);
	quota_give(&f->slots[one], 2 * MiB);
	assert_int_equal(weir_sched_get_memory(h, pid, 0, &m), WEIR_OK);
	assert_memory_equal(m.gpu_uuid, uuid, sizeof uuid);
	assert_int_equal(m.used, 18 * MiB);
	assert_int_equal(m.contexts, 10 * MiB);
	assert_int_equal(m.idle, 3 * MiB);
	assert_int_equal(m.pool_spare, 8 * MiB);
	assert_int_equal(m.given_away, 16 * MiB);
	assert_int_equal(m.wanted, 24 * MiB);
	assert_int_equal(m.quota, 100 * MiB);
	assert_int_equal(m.quota_left, 72 * MiB);
	assert_int_equal(m.group_used, 28 * MiB);
	assert_int_equal(m.group_peak, 30 * MiB);
	assert_int_equal(m.refused_count, 1);
	assert_int_equal(m.pool_hit_count, 7);
	assert_int_equal(m.driver_alloc_count, 100);
	assert_in_range(m.driver_alloc_p50_ns, 900, 1200);
	assert_in_range(m.driver_alloc_p99_ns, 4500000, 6000000);
	assert_int_equal(weir_sched_get_memory(h, pid, 1, &m), WEIR_OK);
	assert_int_equal(m.gpu_uuid[0], 8);
	assert_int_equal(m.used, 95 * MiB);
	assert_int_equal(m.refused_count, 0);
	assert_int_equal(weir_sched_get_memory(h, pid, 2, &m), WEIR_ERROR_NOT_FOUND);
	assert_int_equal(weir_sched_get_memory(h, pid, UINT32_MAX, &m), WEIR_ERROR_NOT_FOUND);
	share_release(f, one);
	share_release(f, two);
	weir_sched_close(h);
	share_close(f);
}

static void set_version(uint32_t version)
{
	char path[96];
	snprintf(path, sizeof path, "%s/sched", directory);
	const int fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, &version, sizeof version, 8), sizeof version);
	close(fd);
}

static void a_file_of_another_version_is_refused(void **state)
{
	char name[17];
	struct share_file *f = make_file();
	weir_sched h = open_handle();
	set_version(SHARE_VERSION + 1);
	assert_int_equal(weir_sched_get_policy(h, name, sizeof name), WEIR_ERROR_FILE);
	set_version(SHARE_VERSION);
	assert_int_equal(weir_sched_get_policy(h, name, sizeof name), WEIR_OK);
	weir_sched_close(h);
	share_close(f);
}

static void a_request_ends_once(void **state)
{
	struct request_table t = { 0 };
	uint64_t begun = 0;
	const uint64_t a = request_table_open(&t, 1000, 0, 500);
	const uint64_t b = request_table_open(&t, 1000, 0, 500); /* at the same time */
	assert_true(a && b && a != b);
	assert_true(request_table_holds(&t, 1100, 500));
	assert_true(request_table_close(&t, a, &begun));
	assert_int_equal(begun, 1000);
	assert_false(request_table_close(&t, a, &begun));
	assert_true(request_table_holds(&t, 1100, 500)); /* b */
	assert_true(request_table_close(&t, b, &begun));
	assert_false(request_table_holds(&t, 1100, 500));
	assert_false(request_table_close(&t, 0, &begun));
	assert_false(request_table_close(&t, UINT64_MAX, &begun));
	const uint64_t c = request_table_open(&t, 1200, 0, 500); /* where a was */
	assert_false(request_table_close(&t, a, &begun));
	assert_true(request_table_close(&t, c, &begun));
}

static void a_request_without_an_end_is_forgotten(void **state)
{
	struct request_table t = { 0 };
	uint64_t begun, first = request_table_open(&t, 1000, 0, 500);
	assert_true(request_table_holds(&t, 1499, 500));
	assert_false(request_table_holds(&t, 1500, 500));
	assert_true(request_table_holds(&t, 999, 500)); /* clocks of two threads */
	for (uint32_t i = 1; i < OPEN_REQUESTS; i++)
		assert_true(request_table_open(&t, 1400, 0, 500));
	assert_int_equal(request_table_open(&t, 1450, 0, 500), 0); /* all are young */
	assert_true(request_table_open(&t, 1500, 0, 500));         /* the first is not */
	assert_false(request_table_close(&t, first, &begun));
	assert_int_equal(request_table_open(&t, 1500, 0, 500), 0);
}

static void the_most_urgent_counts(void **state)
{
	struct request_table t = { 0 };
	uint64_t begun;
	assert_int_equal(request_table_deadline(&t, 1000, 500), 0);
	request_table_open(&t, 1000, 0, 500);
	assert_int_equal(request_table_deadline(&t, 1000, 500), 0);
	request_table_open(&t, 1000, 300, 500);
	const uint64_t urgent = request_table_open(&t, 1100, 50, 500);
	assert_int_equal(request_table_deadline(&t, 1100, 500), 1150);
	request_table_close(&t, urgent, &begun);
	assert_int_equal(request_table_deadline(&t, 1100, 500), 1300);
	assert_int_equal(request_table_deadline(&t, 1500, 500), 0);
}

static struct request_table shared_table;

static void *open_and_close(void *argument)
{
	uint64_t begun, ended = 0;
	for (uint64_t i = 1; i <= 20000; i++) {
		const uint64_t name = request_table_open(&shared_table, i, 0, UINT64_MAX);
		ended += name && request_table_close(&shared_table, name, &begun);
	}
	return (void *)(uintptr_t)ended;
}

static void threads_have_requests_of_their_own(void **state)
{
	pthread_t t[4];
	void *ended;
	for (int i = 0; i < 4; i++)
		assert_false(pthread_create(&t[i], NULL, open_and_close, NULL));
	for (int i = 0; i < 4; i++) {
		assert_false(pthread_join(t[i], &ended));
		assert_int_equal((uintptr_t)ended, 20000);
	}
	assert_false(request_table_holds(&shared_table, 20000, UINT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_function_says_what_it_cannot_do),
		cmocka_unit_test(opening_makes_nothing),
		cmocka_unit_test(each_status_has_a_text),
		cmocka_unit_test(what_is_null_or_wrong_is_refused),
		cmocka_unit_test(settings_that_contradict_each_other_are_refused),
		cmocka_unit_test(structures_have_the_size_that_they_had),
		cmocka_unit_test(structures_may_be_of_later_versions),
		cmocka_unit_test(a_closed_handle_stays_invalid),
		cmocka_unit_test(handles_are_limited),
		cmocka_unit_test(a_handle_may_be_closed_while_others_use_it),
		cmocka_unit_test(a_child_has_its_parents_handles),
		cmocka_unit_test(what_is_of_all_programs_is_in_the_file),
		cmocka_unit_test(metrics_are_what_the_slot_says),
		cmocka_unit_test(memory_is_what_the_slots_say),
		cmocka_unit_test(a_file_of_another_version_is_refused),
		cmocka_unit_test(a_request_ends_once),
		cmocka_unit_test(a_request_without_an_end_is_forgotten),
		cmocka_unit_test(the_most_urgent_counts),
		cmocka_unit_test(threads_have_requests_of_their_own),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
