/* Programs that share a GPU: the shared file, the rule that a program decides by, policies. */
#include "unit.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/expect.h"
#include "share/arrival.h"
#include "share/policy.h"
#include "share/rule.h"
#include "share/segment.h"

static char directory[64];

static struct share_file *open_file(void)
{
	const char *why = NULL;
	struct share_file *f = share_open(directory, &why);
	assert_non_null(f);
	return f;
}

static int make_directory(void **state)
{
	strcpy(directory, "/tmp/weir-sched.XXXXXX");
	return !mkdtemp(directory);
}

static int remove_directory(void **state)
{
	char path[96];
	snprintf(path, sizeof path, "%s/sched", directory);
	unlink(path);
	return rmdir(directory);
}

static const struct share_self latency = {
	.class = CLASS_LATENCY, .who.weight = 1, .max_wait_ns = 5
};
static const struct share_self best_effort = { .class = CLASS_BEST_EFFORT, .who.weight = 1 };

static void who_was_killed_while_it_made_a_device_is_in_nobodys_way(void **state)
{
	static const uint8_t uuid[16] = { 7, 7 };
	struct share_file *f = open_file();
	struct stat st;
	const uint32_t next = share_device(f, (const uint8_t[16]){ 6 }, 8) + 1;
	const pid_t pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_false(stat("/proc/self/ns/pid", &st));
	f->devices[next].who.state = SLOT_CLAIMED | (uint32_t)st.st_ino << SLOT_STATE_BITS;
	f->devices[next].who.sms = (uint32_t)pid;
	assert_int_equal(share_device(f, uuid, 132), next);
	assert_int_equal(share_device(f, uuid, 132), next);
	assert_int_equal(f->devices[next].who.sms, 132);
	share_close(f);
}

/* In a child, since a process has one slot a device. */
static uint32_t claim_in_child(struct share_file *f, const struct share_self *self, pid_t *ret_pid)
{
	int told[2];
	uint32_t slot = SHARE_SLOTS;
	assert_false(pipe(told));
	*ret_pid = fork();
	if (!*ret_pid) {
		alarm(60); /* should the test fail */
		slot = share_claim(f, 0, self);
		if (slot < SHARE_SLOTS)
			share_bit_set(f->devices[0].active, slot);
		if (write(told[1], &slot, sizeof slot) != sizeof slot)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(told[0], &slot, sizeof slot), sizeof slot);
	close(told[0]);
	close(told[1]);
	return slot;
}

static void slots_of_the_killed_are_given_back(void **state)
{
	pid_t pid;
	struct share_file *f = open_file();
	const uint32_t slot = claim_in_child(f, &latency, &pid);
	assert_in_range(slot, 0, SHARE_SLOTS - 1);
	assert_true(share_bit(f->devices[0].present, slot));
	assert_int_equal(share_bury(f), 0);
	kill(pid, SIGKILL);
	siginfo_t info;
	waitid(P_PID, (id_t)pid, &info,
		WEXITED | WNOWAIT); /* nobody has asked after it: a zombie */
	assert_true(share_is_dead(&f->slots[slot]));
	assert_int_equal(share_bury(f), 1);
	assert_int_equal(share_bury(f), 0);
	assert_false(share_any(f->devices[0].present));
	assert_false(share_any(f->devices[0].active));
	waitpid(pid, NULL, 0);
	share_close(f);
}

/* As one that was killed while it claimed or freed a slot leaves it. */
static void slots_that_were_half_claimed_are_given_back(void **state)
{
	pid_t pid;
	struct stat space;
	struct share_file *f = open_file();
	const uint32_t slot = claim_in_child(f, &latency, &pid);
	assert_false(stat("/proc/self/ns/pid", &space));
	f->slots[slot].who.state = SLOT_CLAIMED | (uint32_t)space.st_ino << SLOT_STATE_BITS;
	assert_int_equal(share_bury(f), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(share_bury(f), 1);
	assert_int_equal(f->slots[slot].who.state, SLOT_FREE);
	assert_false(share_any(f->devices[0].present));
	assert_false(share_any(f->devices[0].active));
	share_close(f);
}

static void *stay(void *unused)
{
	pause();
	return unused;
}

/* main() may end by pthread_exit(): the process looks like a zombie, and goes on. */
static void who_has_a_thread_left_is_not_dead(void **state)
{
	int told[2];
	uint32_t slot = SHARE_SLOTS;
	char path[64], text[256] = "";
	struct share_file *f = open_file();
	assert_false(pipe(told));
	const pid_t pid = fork();
	if (!pid) {
		pthread_t t;
		alarm(60);
		slot = share_claim(f, 0, &latency);
		pthread_create(&t, NULL, stay, NULL);
		if (write(told[1], &slot, sizeof slot) != sizeof slot)
			_exit(1);
		pthread_exit(NULL);
	}
	assert_int_equal(read(told[0], &slot, sizeof slot), sizeof slot);
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	while (!strstr(text, ") Z")) {
		FILE *file = fopen(path, "r");
		assert_non_null(file);
		assert_non_null(fgets(text, sizeof text, file));
		fclose(file);
	}
	assert_false(share_is_dead(&f->slots[slot]));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(share_bury(f), 1);
	share_close(f);
}

/* A dead process's slot may be another's when it is buried. */
static void nobody_releases_what_is_anothers(void **state)
{
	pid_t pid;
	struct share_file *f = open_file();
	const uint32_t slot = claim_in_child(f, &latency, &pid);
	share_release(f, slot);
	assert_int_equal(f->slots[slot].who.state, SLOT_LIVE);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(share_bury(f), 1);
	share_close(f);
}

static void who_comes_again_has_one_slot(void **state)
{
	struct share_file *f = open_file();
	const uint32_t one = share_claim(f, 0, &best_effort), two = share_claim(f, 0, &latency);
	uint32_t live = 0;
	assert_in_range(two, 0, SHARE_SLOTS - 1);
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		live += f->slots[i].who.state == SLOT_LIVE;
	assert_int_equal(live, 1);
	assert_true(one < SHARE_SLOTS);
	share_release(f, two);
	share_release(f, two); /* twice does no harm */
	share_close(f);
}

static void when_all_are_taken_there_is_none(void **state)
{
	struct share_file *f = open_file();
	for (uint32_t i = 0; i < SHARE_SLOTS; i++) /* of another name space of process ids */
		f->slots[i].who = (struct share_who){ .state = SLOT_LIVE, .pid = 1 };
	assert_int_equal(share_claim(f, 0, &latency), SHARE_SLOTS);
	memset(f->slots, 0, sizeof f->slots);
	share_close(f);
}

static void the_class_may_change(void **state)
{
	struct share_file *f = open_file();
	const uint32_t i = share_claim(f, 0, &best_effort);
	assert_int_equal(f->slots[i].grant.mode, MODE_GATE);
	share_set_class(f, i, CLASS_LATENCY);
	assert_true(share_bit(f->devices[0].present, i));
	assert_int_equal(f->slots[i].grant.mode, MODE_OPEN);
	share_set_class(f, i, CLASS_BEST_EFFORT);
	assert_false(share_bit(f->devices[0].present, i));
	share_release(f, i);
	share_close(f);
}

/* Tokens of 1.3 ms, 60 us apart: the bit stays over the pause, and goes when none comes. */
static void who_answers_in_pieces_is_active_between_them(void **state)
{
	struct share_file *f = open_file();
	const uint32_t i = share_claim(f, 0, &latency);
	struct share_work *w = &f->slots[i].work;
	const uint64_t end = 5000000, pause = 60000;
	w->begun_ns = end - 1300000;
	w->ended_ns = end;
	w->lasts_ns = 1300000;
	w->next_ns = end + pause;
	share_bit_set(f->devices[0].active, i);
	assert_true(share_end_lingering(f, 0, end + pause));
	assert_true(share_bit(f->devices[0].active, i));
	w->inside = 1;
	assert_false(share_end_lingering(f, 0, end + 3 * pause));
	assert_true(share_bit(f->devices[0].active, i));
	w->inside = 0;
	assert_false(share_end_lingering(f, 0, end + 2 * pause));
	assert_false(share_bit(f->devices[0].active, i));
	w->lasts_ns = 100000; /* the pauses are not little */
	assert_int_equal(share_lingers_until(w), 0);
	w->lasts_ns = 13000000;
	w->next_ns = end + 1000000; /* a closed loop */
	assert_int_equal(share_lingers_until(w), 0);
	w->next_ns = 0;
	assert_int_equal(share_lingers_until(w), 0);
	share_bit_set(f->devices[0].active, i); /* such a one clears its bit itself */
	assert_false(share_end_lingering(f, 0, end * 2));
	assert_true(share_bit(f->devices[0].active, i));
	share_release(f, i);
	share_close(f);
}

static void each_duration_is_in_its_bucket(void **state)
{
	for (uint64_t ns = 1; ns < 1ull << 40; ns += ns / 7 + 1) {
		const uint32_t i = share_bucket(ns);
		assert_true(share_bucket_ns(i) <= ns && ns < share_bucket_ns(i + 1));
	}
	assert_int_equal(share_bucket(UINT64_MAX), SHARE_BUCKETS - 1);
}

static void percentiles_are_of_what_is_counted(void **state)
{
	static uint32_t bucket[SHARE_BUCKETS];
	assert_int_equal(share_percentile(bucket, 0.99), 0);
	for (int i = 0; i < 99; i++)
		share_count(bucket, 1000);
	share_count(bucket, 1000000);
	assert_in_range(share_percentile(bucket, 0.5), 850, 1250);
	assert_in_range(share_percentile(bucket, 0.99), 850, 1250);
	assert_in_range(share_percentile(bucket, 0.995), 850000, 1250000);
}

#define LONG  ((struct rule_launch){ .t90_ns = 500000, .may_be_capped = true })
#define SHORT ((struct rule_launch){ .t90_ns = 30000, .may_be_capped = true })

static enum rule_verdict ask(const struct share_grant *g, struct rule_view v, struct rule_launch l)
{
	enum rule_reason reason;
	uint32_t sms = 0;
	const enum rule_verdict verdict = rule_of(g, &v, &l, &sms, &reason);
	assert_true(verdict != RULE_WAIT || reason != REASON_NONE);
	assert_true(verdict != RULE_CAP || sms);
	return verdict;
}

static void an_open_gate_asks_nothing(void **state)
{
	const struct share_grant g = { .mode = MODE_OPEN };
	assert_int_equal(
		ask(&g, (struct rule_view){ .active = true, .inflight_ns = 1ull << 40 }, LONG),
		RULE_GO);
}

static void who_is_gated_waits_for_requests_and_for_its_budget(void **state)
{
	const struct share_grant g = { .mode = MODE_GATE, .budget_ns = 100000 };
	assert_int_equal(ask(&g, (struct rule_view){ .active = true }, SHORT), RULE_WAIT);
	assert_int_equal(ask(&g, (struct rule_view){ 0 }, LONG), RULE_GO); /* one always may */
	assert_int_equal(ask(&g, (struct rule_view){ .inflight_ns = 60000 }, SHORT), RULE_GO);
	assert_int_equal(ask(&g, (struct rule_view){ .inflight_ns = 80000 }, SHORT), RULE_WAIT);
}

static void behind_a_hold_launches_go_ahead(void **state)
{
	const struct share_grant g = { .mode = MODE_CAP, .cap_sms = 64, .budget_ns = 100000 };
	struct rule_view v = { .active = true, .on_device = true, .inflight_ns = 5000000 };
	assert_int_equal(ask(&g, v, LONG), RULE_GO);
	v.inflight_ns = RULE_AHEAD_NS;
	assert_int_equal(ask(&g, v, LONG), RULE_WAIT);
	v.inflight_ns = 0;
	const struct share_grant turn = { .mode = MODE_HOLD, .budget_ns = 100000 };
	assert_int_equal(ask(&turn, v, LONG), RULE_WAIT);
}

static void alone_only_what_is_much_waits(void **state)
{
	const struct share_grant g = {
		.mode = MODE_GATE, .budget_ns = 1, .alone_ns = SHARE_ALONE_NS
	};
	struct rule_view v = { .alone = true, .inflight_ns = SHARE_ALONE_NS - 600000 };
	assert_int_equal(ask(&g, v, LONG), RULE_GO);
	v.inflight_ns = SHARE_ALONE_NS - 400000;
	assert_int_equal(ask(&g, v, LONG), RULE_WAIT);
	v = (struct rule_view){ .active = true, .inflight_ns = 1000000 };
	struct rule_launch copy = SHORT; /* in nobody's way */
	copy.is_small = true;
	assert_int_equal(ask(&g, v, copy), RULE_GO);
	v.inflight_ns = SHARE_ALONE_NS;
	assert_int_equal(ask(&g, v, copy), RULE_WAIT);
}

static void caps_are_for_what_may_be_capped(void **state)
{
	const struct share_grant g = {
		.mode = MODE_CAP, .cap_sms = 64, .budget_ns = 100000, .full_below_ns = 100000
	};
	struct rule_launch other = LONG;
	other.may_be_capped = false;
	assert_int_equal(ask(&g, (struct rule_view){ .active = true }, SHORT), RULE_CAP);
	assert_int_equal(ask(&g, (struct rule_view){ .active = true }, other), RULE_WAIT);
	assert_int_equal(ask(&g, (struct rule_view){ 0 }, SHORT), RULE_GO);
	assert_int_equal(ask(&g, (struct rule_view){ 0 }, LONG), RULE_CAP);
	assert_int_equal(ask(&g, (struct rule_view){ 0 }, other), RULE_GO);
}

static void what_would_meet_the_next_request_is_held_or_capped(void **state)
{
	struct share_grant g = { .mode = MODE_GATE, .budget_ns = 1000000, .ahead_ns = 20000 };
	const struct rule_view near = { .now_ns = 1000000, .next_ns = 1200000 };
	assert_int_equal(ask(&g, near, SHORT), RULE_GO);
	assert_int_equal(ask(&g, near, LONG), RULE_WAIT);
	g.mode = MODE_CAP;
	g.cap_sms = 64;
	g.cap_ahead_sms = 88;
	g.full_below_ns = UINT64_MAX;
	assert_int_equal(ask(&g, near, LONG), RULE_CAP);
	const struct rule_view past = { .now_ns = 1300000,
		.next_ns = 1200000 }; /* it did not come */
	assert_int_equal(ask(&g, past, LONG), RULE_GO);
}

static void nobody_runs_in_others_turn(void **state)
{
	const struct share_grant g = { .mode = MODE_HOLD, .budget_ns = UINT64_MAX };
	assert_int_equal(ask(&g, (struct rule_view){ 0 }, SHORT), RULE_WAIT);
}

static uint64_t clock_ns;

/* One request of so long, so long after the last; when the next is expected, from its end. */
static int64_t request(struct arrival *a, uint64_t gap, uint64_t lasts)
{
	clock_ns += gap;
	arrival_begins(a, clock_ns);
	clock_ns += lasts;
	const uint64_t next = arrival_ends(a, clock_ns);
	return next ? (int64_t)(next - clock_ns) : -1;
}

static void a_closed_loop_is_told_by_its_pause(void **state)
{
	struct arrival a = { 0 };
	int64_t next = -1;
	for (int i = 0; i < 100; i++)
		next = request(&a, 2000000, 100000 + (uint64_t)(i % 7) * 30000);
	assert_in_range(next, 1990000, 2010000);
}

static void a_clock_is_told_by_its_distance(void **state)
{
	struct arrival a = { 0 };
	int64_t next = -1;
	uint64_t lasts = 100000;
	for (int i = 0; i < 100; i++) {
		const uint64_t before = lasts;
		lasts = 100000 + (uint64_t)(i % 7) * 60000;
		next = request(&a, 2000000 - before, lasts);
	}
	assert_in_range(next + (int64_t)lasts, 1980000, 2020000);
}

static void of_chance_nothing_is_told(void **state)
{
	struct arrival a = { 0 };
	int told = 0;
	srand(3);
	for (int i = 0; i < 1000; i++)
		told += request(&a, 600000 + (uint64_t)rand() % 9000000, 100000) >= 0;
	assert_in_range(told, 0, 5);
}

/* It was of another class when that one began. */
static void a_request_whose_begin_was_missed_teaches_nothing(void **state)
{
	struct arrival a = { 0 };
	clock_ns += 1000000000;
	assert_int_equal(arrival_ends(&a, clock_ns), 0);
	request(&a, 1000, 100);
	assert_true(a.lasts.ns < 101);
	arrival_ends(&a, clock_ns += 1000000000);
	assert_true(a.lasts.ns < 101);
}

/* The tokens of an answer are told together, at their mean with the pauses between them. */
static void requests_in_quick_succession_are_one(void **state)
{
	struct arrival_run r = { 0 };
	for (uint64_t i = 0; i < 10; i++) {
		assert_false(arrival_run_ends(&r, 1000000 + i * 1500));
		arrival_run_add(&r, 1000000 + i * 1500, 1000000 + i * 1500 + 1000, 7);
	}
	assert_true(arrival_run_ends(&r, 1014500 + ARRIVAL_QUICK_NS + 1));
	assert_int_equal(arrival_run_end(&r, 1014500 + ARRIVAL_QUICK_NS + 1),
		share_packed(1450, 10, SHARE_ALONE));
	arrival_run_add(&r, 1014600, 1014900, 7);
	arrival_run_add(&r, 1015000, 1016000, 8); /* best effort has got in between */
	assert_false(r.alone);
	r.count = SHARE_RUN;
	assert_true(arrival_run_ends(&r, 1016001));
}

/* A program that is always busy: once that is seen, four requests in a row that had the device
 * alone are told, and answers are whole again when it pauses. */
static void a_run_without_an_end_is_told_in_parts(void **state)
{
	struct arrival_run r = { 0 };
	uint64_t at = 1000000;
	for (uint32_t i = 0; i < SHARE_RUN; i++, at += 1500) {
		const uint64_t mark = i / 10 % 2 ? 7 : 0;
		assert_false(arrival_run_ends(&r, at) || arrival_run_breaks(&r, mark));
		arrival_run_add(&r, at, at + 1000, mark);
	}
	assert_true(arrival_run_ends(&r, at));
	assert_int_equal(arrival_run_end(&r, at), share_packed(1499, SHARE_RUN, SHARE_PART));
	for (uint64_t i = 0; i < 10; i++, at += 1500) {
		const uint64_t mark = i < 5 ? 0 : 7;
		assert_int_equal(arrival_run_breaks(&r, mark), i == 5);
		if (arrival_run_breaks(&r, mark))
			assert_int_equal(
				arrival_run_end(&r, at), share_packed(1400, 5, SHARE_PART));
		arrival_run_add(&r, at, at + 1000, mark);
	}
	assert_true(r.alone && arrival_run_breaks(&r, 8));
	r.count = 3;
	assert_false(arrival_run_breaks(&r, 8));
	arrival_run_end(&r, at + ARRIVAL_QUICK_NS);
	assert_false(r.goes_on);
}

/* Thirty tokens an answer, answers by chance: after a token the next is near. */
static void an_answer_lasts_longer_than_a_token(void **state)
{
	struct arrival a = { 0 };
	srand(4);
	for (int answer = 0; answer < 20; answer++) {
		request(&a, 5000000 + (uint64_t)rand() % 90000000, 1300000);
		for (int token = 0; token < 30; token++) {
			const int64_t next = request(&a, 50000 + (uint64_t)rand() % 40000, 1300000);
			if (answer > 0 && token > 0)
				assert_in_range(next, 50000, 500000);
		}
	}
}

static struct policy_view view;
static struct policy_state remembered;
static struct policy_params params;
static struct share_grant grants[SHARE_SLOTS];

static void begin_view(bool mps)
{
	memset(&remembered, 0, sizeof remembered);
	params = policy_params_default;
	view = (struct policy_view){ .now_ns = 1, .sms = 132, .step = 8, .mps = mps };
	view.program[0] = (struct policy_program){
		.here = true, .class = CLASS_LATENCY, .widest = 64, .inside = true
	};
	view.program[1] = (struct policy_program){
		.here = true, .class = CLASS_BEST_EFFORT, .inside = true, .weight = 1
	};
	view.program[2] = view.program[1];
}

static uint64_t decide(const char *name)
{
	uint64_t again = 0;
	const uint64_t before = view.now_ns;
	policy_find(name)->decide(&view, &params, &remembered, grants, &again);
	policy_check(&view, grants, again);
	assert_int_equal(expect_report().count, 0);
	assert_true(again > before);
	return again;
}

static void fifo_leaves_all_alone(void **state)
{
	begin_view(true);
	decide("fifo");
	for (int i = 0; i < 3; i++)
		assert_int_equal(grants[i].mode, MODE_OPEN);
}

static void strict_gates_best_effort_only(void **state)
{
	begin_view(true);
	decide("strict");
	assert_int_equal(grants[0].mode, MODE_OPEN);
	assert_int_equal(grants[1].mode, MODE_GATE);
	assert_int_equal(grants[1].cap_sms, 0);
}

/* Requests that come by chance, at any rate: fewer than one in 80 finds its program at rest, and
 * between two that are far apart it rests. */
static void hardly_a_request_finds_a_program_at_rest(void **state)
{
	static const double pauses_ms[] = { 1, 10, 40, 100, 1000, 20000 };
	srand(5);
	for (size_t i = 0; i < COUNT_OF(pauses_ms); i++) {
		struct rest r = { 0 };
		uint64_t now = 1, found = 0;
		const uint64_t requests = 20000;
		for (uint64_t k = 0; k < requests; k++) {
			const double chance = (rand() + 1.0) / (RAND_MAX + 1.0);
			const uint64_t next = now + (uint64_t)(-log(chance) * pauses_ms[i] * 1e6);
			const uint64_t each = (uint64_t)(pauses_ms[i] * 1e5);
			bool rests = false;
			for (; now + each < next; now += each)
				rests = rest_look(&r, 7, k, false, now);
			now = next;
			found += rests && k > 100;
			assert_false(rest_look(&r, 7, k + 1, true, now));
		}
		assert_in_range(found, 0, requests / 80);
		now += REST_LEAST_NS + (uint64_t)(pauses_ms[i] * 1e8);
		assert_true(rest_look(&r, 7, requests, false, now));
	}
}

static void best_effort_is_alone_while_the_others_rest(void **state)
{
	static const char *const names[] = { "strict", "edf", "fit" };
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		begin_view(false);
		view.program[0].requests = view.requests = 40;
		decide(names[i]);
		assert_int_equal(grants[1].rest, 0);
		view.program[0].inside = false;
		view.now_ns += 1000000;
		decide(names[i]);
		assert_int_equal(grants[1].rest, 0); /* it may come again soon */
		view.now_ns += 10000000000;
		decide(names[i]);
		assert_int_equal(grants[1].rest, 41);
		view.program[0].requests = view.requests = 41;
		decide(names[i]);
		assert_int_equal(grants[1].rest, 0);
		view.now_ns += 500000000;
		decide(names[i]);
		assert_int_equal(grants[1].rest, 0); /* requests are ten seconds apart */
	}
}

static void the_first_request_ends_a_rest(void **state)
{
	static struct share_slot slot = { .grant = { .mode = MODE_GATE, .rest = 41 } };
	static struct share_device device = { .requests = 40, .present = { 1 } };
	assert_true(rule_is_alone(&slot, &device));
	device.active[0] = 1; /* before it counts, or of another class when it began */
	assert_false(rule_is_alone(&slot, &device));
	device.active[0] = 0;
	device.requests = 41;
	assert_false(rule_is_alone(&slot, &device));
	device.requests = 40;
	slot.grant.mode = MODE_HOLD;
	assert_false(rule_is_alone(&slot, &device));
	slot.grant.mode = MODE_GATE;
	slot.grant.rest = 0;
	assert_false(rule_is_alone(&slot, &device));
	device.present[0] = 0;
	assert_true(rule_is_alone(&slot, &device));
}

static void holds_are_for_best_effort_under_mps(void **state)
{
	for (int mps = 0; mps < 2; mps++) {
		begin_view(mps);
		params.hold_ns = 200000;
		decide("fit");
		assert_int_equal(grants[0].hold_ns, 0);
		assert_int_equal(grants[1].hold_ns, mps ? 200000 : 0);
	}
	begin_view(true);
	decide("fit");
	assert_int_equal(grants[1].hold_ns, 0);
}

static uint32_t together = 1;

/* Requests that take so long, alone or not, for so many decisions. */
static void see_requests(uint64_t alone_ns, uint64_t beside_ns, int decisions)
{
	static uint64_t request[8]; /* which the view keeps */
	for (int i = 0; i < decisions; i++) {
		const bool alone = remembered.slowdown.window || !remembered.slowdown.budget_ns;
		for (int k = 0; k < 8; k++)
			request[k] = share_packed(alone ? alone_ns : beside_ns, together, alone);
		view.program[0].request = request;
		view.program[0].fresh = 8;
		view.now_ns = decide("fit");
	}
}

/* The place where best effort waits, once it is known what requests take alone. */
static void fit_lets_hosts_work_ahead_of_long_requests(void **state)
{
	static const struct {
		uint64_t alone_ns, beside_ns;
		bool mps, holds;
	} t[] = { { 1200000, 1250000, true, true }, { 1200000, 1250000, false, false },
		{ 200000, 210000, true, false }, { 1200000, 3600000, true, false } };
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		begin_view(t[i].mps);
		view.program[0].who = 5;
		decide("fit");
		assert_int_equal(grants[1].hold_ns, 0);
		see_requests(t[i].alone_ns, t[i].beside_ns, 1000);
		assert_int_equal(remembered.holds, t[i].holds);
		assert_int_equal(grants[1].hold_ns > 0, t[i].holds);
		assert_true(grants[1].hold_ns <= t[i].alone_ns * 6 / 10);
	}
	/* They have been quick enough for long enough. */
	see_requests(1200000, 1210000, 3000);
	assert_true(remembered.holds);
	params.budget_ns = 300000;
	decide("fit");
	assert_int_equal(grants[1].hold_ns, 0);
}

/* Tokens of 1.4 ms, of which 32 are an answer: best effort may delay it by more than a token, and
 * no token by more than is allowed. */
static void an_answer_is_one_request_to_the_budget(void **state)
{
	for (int answers = 0; answers < 2; answers++) {
		begin_view(false);
		view.program[0].who = 5;
		together = answers ? 32 : 1;
		see_requests(1400000, 1420000, 10);
		assert_int_equal(grants[1].budget_ns, answers ? 8000000 : 350000);
		see_requests(1400000, 2800000, 2000);
		assert_int_equal(grants[1].budget_ns, 40000);
	}
	together = 1;
}

/* Best effort's host can work ahead with a tenth of the delay that is allowed. */
static void a_long_request_leaves_best_effort_a_budget(void **state)
{
	begin_view(false);
	view.program[0].who = 5;
	see_requests(100000000, 200000000, 2000);
	assert_in_range(grants[1].budget_ns, 1499999, 1500000);
	params.slowdown = 1.01;
	see_requests(100000000, 200000000, 2000);
	assert_in_range(grants[1].budget_ns, 99999, 100000);
}

static void fit_caps_beside_the_narrow_under_mps(void **state)
{
	begin_view(true);
	decide("fit");
	assert_int_equal(grants[1].mode, MODE_CAP);
	assert_int_equal(grants[1].cap_sms, 64); /* 68 are left, in steps of 8 */
	view.program[0].widest = 132;
	decide("fit");
	assert_int_equal(grants[1].mode, MODE_GATE);
	assert_int_equal(grants[1].cap_sms, 0);
	begin_view(false);
	decide("fit");
	assert_int_equal(grants[1].mode, MODE_GATE);
}

/* In which best effort gets half of the device. */
static void pass_a_second(void)
{
	view.now_ns += 1000000000;
	view.program[1].retired_ns += 500000000;
	view.program[2].retired_ns += 500000000;
}

static void fit_tightens_until_the_target_is_met(void **state)
{
	begin_view(true);
	view.program[0].target_p99_ns = 1000;
	view.program[0].p99_ns = 2000;
	pass_a_second();
	decide("fit");
	const uint64_t first = grants[1].budget_ns;
	pass_a_second();
	decide("fit");
	assert_true(grants[1].budget_ns < first);
	view.program[0].p99_ns = 500;
	const uint64_t tight = grants[1].budget_ns;
	pass_a_second();
	decide("fit");
	assert_true(grants[1].budget_ns > tight);
}

/* Requests of 1 ms alone take 1.5 beside best effort; with caps, which go when no budget helps. */
static void fit_holds_the_slowdown(void **state)
{
	uint64_t request[8];
	int held = 0;
	begin_view(true);
	view.program[0].who = 5;
	view.program[0].slowdown = 1.2;
	for (int i = 0; i < 2000; i++) {
		const bool alone = remembered.slowdown.window || i < 20;
		for (int k = 0; k < 8; k++)
			request[k] = share_packed(alone ? 1000000 : 1500000, 1, alone);
		view.program[0].request = request;
		view.program[0].fresh = 8;
		view.now_ns = decide("fit");
		held += grants[1].mode == MODE_HOLD;
		assert_int_equal(grants[0].mode, MODE_OPEN);
	}
	assert_int_equal(grants[1].budget_ns, 40000);
	assert_int_equal(grants[1].cap_sms, 0);
	assert_int_equal(remembered.slowdown.program[0].steer.target, 1200);
	assert_in_range(held, 1, 200);
	params.budget_ns = 300000;
	decide("fit");
	assert_int_equal(grants[1].budget_ns, 300000);
}

static void a_budget_that_a_person_asks_for_stays_one(void **state)
{
	const uint64_t asked[] = { 1, UINT64_MAX };
	for (int i = 0; i < 2; i++) {
		begin_view(false);
		params.budget_ns = asked[i];
		view.program[0].target_p99_ns = 1000;
		for (int round = 0; round < 40; round++) {
			view.program[0].p99_ns = i ? 500 : 2000;
			pass_a_second();
			decide("fit");
			assert_true(grants[1].budget_ns);
		}
	}
}

static void the_starved_get_their_floor(void **state)
{
	begin_view(true);
	decide("strict");
	view.now_ns += 200000000;
	view.program[2].retired_ns = 100000000; /* slot 1 has got nothing */
	decide("strict");
	assert_int_equal(grants[1].mode, MODE_BUDGET);
	assert_int_equal(grants[2].mode, MODE_GATE);
}

/* Each runs when it is let; by and by shares are as weights. */
static void fair_shares_by_weight(void **state)
{
	begin_view(false);
	view.program[0].here = false;
	view.program[2].weight = 3;
	for (int turn = 0; turn < 10000; turn++) {
		decide("fair");
		view.now_ns += 1000000;
		const bool one = grants[1].mode != MODE_HOLD, two = grants[2].mode != MODE_HOLD;
		assert_true(one || two);
		for (int i = 1; i <= 2; i++)
			if (grants[i].mode != MODE_HOLD)
				view.program[i].retired_ns += one && two ? 500000 : 1000000;
	}
	const double ratio =
		(double)view.program[2].retired_ns / (double)view.program[1].retired_ns;
	assert_true(ratio > 2.9 && ratio < 3.1);
}

/* One is stopped in the middle of its work: the other runs as if it were alone, and so does the
 * first when it goes on. */
static void fair_waits_for_nobody_that_does_not_go_on(void **state)
{
	for (int mps = 0; mps < 2; mps++) {
		int held = 0;
		begin_view(mps);
		view.program[0].here = false;
		view.program[1].retired_ns = 1000000;
		for (int ms = 0; ms < 2000; ms++) {
			decide("fair");
			view.now_ns += 1000000;
			if (grants[2].mode != MODE_HOLD)
				view.program[2].retired_ns += 1000000;
			held += ms > 500 && grants[2].mode == MODE_HOLD;
		}
		assert_int_equal(held, 0);
		assert_int_equal(grants[1].mode, MODE_BUDGET);
		for (int ms = 0; ms < 200; ms++) { /* it has no claim to what it has missed */
			decide("fair");
			view.now_ns += 1000000;
			for (int i = 1; i <= 2; i++)
				if (grants[i].mode != MODE_HOLD)
					view.program[i].retired_ns += 500000;
			held += grants[2].mode == MODE_HOLD;
		}
		assert_in_range(held, 0, 130);
	}
}

static void edf_lets_the_most_urgent_go_first(void **state)
{
	begin_view(false);
	view.now_ns = 1000;
	view.program[1].class = CLASS_LATENCY;
	view.program[0].deadline_ns = 9000;
	view.program[0].begun_ns = view.program[1].begun_ns = 500;
	view.program[1].deadline_ns = 4000;
	decide("edf");
	assert_int_equal(grants[0].mode, MODE_HOLD);
	assert_int_equal(grants[1].mode, MODE_OPEN);
	assert_int_equal(grants[2].mode, MODE_GATE);
}

/* It was stopped in the middle of a request: nobody waits for it any longer than for any other. */
static void edf_waits_for_nobody_for_ever(void **state)
{
	begin_view(false);
	view.program[1].class = CLASS_LATENCY;
	for (int i = 0; i < 2; i++) {
		view.program[i].deadline_ns = 5000;
		view.program[i].max_wait_ns = 100000;
	}
	view.program[0].begun_ns = 1000;
	view.now_ns = view.program[1].begun_ns = 50000;
	decide("edf");
	assert_int_equal(grants[1].mode, MODE_HOLD);
	view.now_ns = view.program[1].begun_ns = 150000;
	decide("edf");
	assert_int_equal(grants[1].mode, MODE_OPEN);
}

/* Whatever a policy sees, who is there gets a mode that exists, and somebody may run. */
static void no_policy_stops_everybody(void **state)
{
	srand(1);
	for (const struct policy *p = policies; p->name; p++)
		for (int round = 0; round < 2000; round++) {
			bool any = false, goes = false;
			begin_view(rand() & 1);
			for (int i = 0; i < 6; i++) {
				struct policy_program *q = &view.program[i];
				*q = (struct policy_program){ .here = rand() & 1,
					.class = 1 + (unsigned)rand() % 2,
					.weight = (unsigned)rand() % 5,
					.widest = (unsigned)rand() % 133,
					.inside = true,
					.begun_ns = (uint64_t)rand(),
					.deadline_ns = (uint64_t)rand() % 3 * 1000,
					.retired_ns = (uint64_t)rand() };
			}
			view.now_ns = 1ull << 40;
			decide(p->name);
			for (int i = 0; i < 6; i++) {
				any = any || view.program[i].here;
				goes = goes ||
				       (view.program[i].here && grants[i].mode != MODE_HOLD);
				if (view.program[i].here)
					assert_in_range(grants[i].mode, MODE_OPEN, MODE_HOLD);
			}
			assert_true(goes || !any);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_was_killed_while_it_made_a_device_is_in_nobodys_way),
		cmocka_unit_test(slots_of_the_killed_are_given_back),
		cmocka_unit_test(slots_that_were_half_claimed_are_given_back),
		cmocka_unit_test(who_has_a_thread_left_is_not_dead),
		cmocka_unit_test(nobody_releases_what_is_anothers),
		cmocka_unit_test(who_comes_again_has_one_slot),
		cmocka_unit_test(when_all_are_taken_there_is_none),
		cmocka_unit_test(the_class_may_change),
		cmocka_unit_test(who_answers_in_pieces_is_active_between_them),
		cmocka_unit_test(each_duration_is_in_its_bucket),
		cmocka_unit_test(percentiles_are_of_what_is_counted),
		cmocka_unit_test(an_open_gate_asks_nothing),
		cmocka_unit_test(who_is_gated_waits_for_requests_and_for_its_budget),
		cmocka_unit_test(behind_a_hold_launches_go_ahead),
		cmocka_unit_test(alone_only_what_is_much_waits),
		cmocka_unit_test(caps_are_for_what_may_be_capped),
		cmocka_unit_test(what_would_meet_the_next_request_is_held_or_capped),
		cmocka_unit_test(nobody_runs_in_others_turn),
		cmocka_unit_test(a_closed_loop_is_told_by_its_pause),
		cmocka_unit_test(a_clock_is_told_by_its_distance),
		cmocka_unit_test(a_request_whose_begin_was_missed_teaches_nothing),
		cmocka_unit_test(of_chance_nothing_is_told),
		cmocka_unit_test(an_answer_lasts_longer_than_a_token),
		cmocka_unit_test(requests_in_quick_succession_are_one),
		cmocka_unit_test(a_run_without_an_end_is_told_in_parts),
		cmocka_unit_test(fifo_leaves_all_alone),
		cmocka_unit_test(strict_gates_best_effort_only),
		cmocka_unit_test(hardly_a_request_finds_a_program_at_rest),
		cmocka_unit_test(best_effort_is_alone_while_the_others_rest),
		cmocka_unit_test(the_first_request_ends_a_rest),
		cmocka_unit_test(holds_are_for_best_effort_under_mps),
		cmocka_unit_test(fit_lets_hosts_work_ahead_of_long_requests),
		cmocka_unit_test(an_answer_is_one_request_to_the_budget),
		cmocka_unit_test(a_long_request_leaves_best_effort_a_budget),
		cmocka_unit_test(fit_caps_beside_the_narrow_under_mps),
		cmocka_unit_test(fit_tightens_until_the_target_is_met),
		cmocka_unit_test(the_starved_get_their_floor),
		cmocka_unit_test(fair_shares_by_weight),
		cmocka_unit_test(fair_waits_for_nobody_that_does_not_go_on),
		cmocka_unit_test(fit_holds_the_slowdown),
		cmocka_unit_test(a_budget_that_a_person_asks_for_stays_one),
		cmocka_unit_test(edf_lets_the_most_urgent_go_first),
		cmocka_unit_test(edf_waits_for_nobody_for_ever),
		cmocka_unit_test(no_policy_stops_everybody),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
