/* Calls marked gate pass whoever regulates launches: nobody, or the function that a part has set.
 */
#include "unit.h"

#include "hook/gate.h"

union hook_hot_page hook_hot_page;

static unsigned passed, last;

static void count(uint32_t fn)
{
	passed++;
	last = fn;
}

static void without_a_part_the_gate_is_open(void **state)
{
	assert_true(gate_is_open());
	gate_enter(FN_cuLaunchKernel);
	assert_int_equal(passed, 0);
}

static void a_part_is_asked_for_each_call(void **state)
{
	hook_hot.gate = count;
	assert_false(gate_is_open());
	gate_enter(FN_cuLaunchKernel);
	gate_enter(FN_cuGraphLaunch);
	assert_int_equal(passed, 2);
	assert_int_equal(last, FN_cuGraphLaunch);
	hook_hot.gate = NULL;
	assert_true(gate_is_open());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_part_the_gate_is_open),
		cmocka_unit_test(a_part_is_asked_for_each_call),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
