/* The extents and pages of memory, added up. */
#include "unit.h"

#include "base/hash.h"
#include "memory/memory.h"

/* More runs than are kept in order, so that they are sorted while they come. */
static void many_scattered_pages_are_counted_once(void **state)
{
	enum { PAGES = 1 << 17, N = 30000 };
	static bool touched[PAGES];
	struct touched t = { 0 };
	struct memory_space space[MEMORY_KINDS] = { 0 };
	uint64_t count = 0;
	for (uint64_t i = 0; i < N; i++) {
		const uint64_t draw = hash_mix(i), page = draw % (PAGES - 4), n = 1 + draw % 7 / 4;
		const struct extent e = { (page << 21) + 5, ((page + n) << 21) - 3, 0, 0 };
		touched_add(&t, &e);
		for (uint64_t k = page; k < page + n; k++)
			touched[k] = true;
	}
	for (uint64_t i = 0; i < PAGES; i++)
		count += touched[i];
	struct extent live = { 0x1000000, 0x1000100, 0, 0 };
	touched_add(&t, &live);
	count += !touched[8];
	space_measure(&live, 1, &t, space);
	assert_int_equal(space[0].pages.reach_bytes, count << 21);
	assert_int_equal(space[0].pages.free_bytes, (count << 21) - 0x100);
	touched_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_scattered_pages_are_counted_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
