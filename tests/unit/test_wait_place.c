/*
 * Best effort waits in its calls or on the device, whichever lets it launch more: programs whose
 * rates with both are known, under the policy, on a clock of their own.
 */
#include "unit.h"

#include "share/policy.h"

#define PAIRS 200
#define STEP  5000000u
#define US    1000u

static uint64_t chance = 1;

static double draw(void)
{
	chance = chance * 6364136223846793005u + 1442695040888963407u;
	return (double)(chance >> 11) / 9007199254740992.0;
}

static struct policy_state remembered;
static struct policy_view view;
static struct policy_params params;

/* Launches a step while best effort is held in its calls, and on the device. */
struct host {
	double calls, device;
	double done;
};

static uint64_t run(struct host *h, double seconds)
{
	struct share_grant grants[SHARE_SLOTS] = { 0 };
	for (double s = 0; s < seconds; s += STEP / 1e9) {
		uint64_t again;
		policy_find("fit")->decide(&view, &params, &remembered, grants, &again);
		policy_check(&view, grants, again);
		view.now_ns += STEP;
		h->done += (grants[1].hold_ns ? h->device : h->calls) * (0.5 + draw());
		view.program[1].launches = (uint64_t)h->done;
	}
	return grants[1].hold_ns;
}

static void begin(void)
{
	remembered = (struct policy_state){ 0 };
	params = policy_params_default;
	view = (struct policy_view){ .now_ns = 1000000000, .sms = 132, .step = 8, .mps = true };
	view.program[0] = (struct policy_program){
		.here = true, .class = CLASS_LATENCY, .who = 1, .lasts_ns = 1000 * US
	};
	view.program[1] = (struct policy_program){ .here = true, .class = CLASS_BEST_EFFORT };
}

static void the_better_is_found(void **state)
{
	for (int i = 0; i < PAIRS; i++) {
		const double times = i % 2 ? 1.2 + draw() : 1 / (1 + draw());
		struct host h = { 20 + 200 * draw(), 0, 0 };
		h.device = h.calls * times;
		begin();
		assert_int_equal(run(&h, 1), 0);
		const uint64_t hold = run(&h, 5);
		assert_true((hold > 0) == (times > 1.1));
	}
}

/* Which of both is better changes: it is tried again. */
static void it_is_tried_again(void **state)
{
	struct host h = { 100, 140, 0 };
	begin();
	assert_true(run(&h, 6) > 0);
	h.device = 60;
	assert_true(!run(&h, 40));
}

static void where_nothing_is_to_be_tried(void **state)
{
	struct host h = { 100, 200, 0 };
	begin();
	view.mps = false;
	assert_int_equal(run(&h, 6), 0);
	begin();
	params.budget_ns = 600 * US;
	assert_int_equal(run(&h, 6), 0);
	begin();
	params.hold_ns = 200 * US;
	assert_int_equal(run(&h, 6), 200 * US);
	begin();
	view.program[0].here = false;
	assert_int_equal(run(&h, 6), 0);
	begin();
	h = (struct host){ 0 };
	assert_int_equal(run(&h, 6), 0);
}

/* With the least budget requests are still too slow. */
static void requests_come_first(void **state)
{
	struct host h = { 100, 200, 0 };
	begin();
	assert_true(run(&h, 6) > 0);
	remembered.slowdown.program[0].steer.reason = STEER_LEAST;
	assert_int_equal(run(&h, 1), 0);
	begin();
	view.program[0].lasts_ns = 130 * US; /* a hold is long for them */
	assert_int_equal(run(&h, 6), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_better_is_found),
		cmocka_unit_test(it_is_tried_again),
		cmocka_unit_test(where_nothing_is_to_be_tried),
		cmocka_unit_test(requests_come_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
