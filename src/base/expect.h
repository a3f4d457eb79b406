/*
 * Checks that stay on: conditions that hold unless Weir has a defect. Use plain conditions for
 * input such as the bytes of a file, and assert() for facts that the surrounding code proves.
 *
 *	expect(sum == total, "the rows add up to the total");
 *	if (!expect(at <= n, "the index is in the table"))
 *		return -EINVAL;
 *
 * The sentence says what should hold. In test builds (cmake -DWEIR_EXPECT=abort, and all Debug
 * ones) a failed check prints it with file and line and aborts. Elsewhere the check is counted, its
 * value is false, and weir says at its end that its output may be wrong. Any thread.
 *
 * expect_slow() is for costly checks. Outside test builds it is not evaluated and is true.
 *
 * expect_inside() is for code inside other people's programs (src/record, src/predict). There
 * nothing is printed and nothing ends the program. It is false, and the caller acts as if there
 * were no room, or learns nothing. In test builds it traps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef WEIR_EXPECT_ABORT
#define EXPECT_ABORTS 1
#else
#define EXPECT_ABORTS 0
#endif

/* Counts, or aborts; false. */
bool expect_broken(const char *file, int line, const char *what);

struct expect_report {
	uint64_t count;
	const char *file, *what; /* of the first; NULL without one */
	int line;
};
struct expect_report expect_report(void);

static inline bool expect_(bool holds, const char *file, int line, const char *what)
{
	return __builtin_expect(holds, 1) || expect_broken(file, line, what);
}

static inline bool expect_skipped_(size_t size)
{
	return size != 0;
}

static inline bool expect_inside_(bool holds)
{
	if (EXPECT_ABORTS && !holds)
		__builtin_trap();
	return __builtin_expect(holds, 1);
}

#define expect(condition, what)        expect_((condition), __FILE__, __LINE__, (what))
#define expect_inside(condition, what) expect_inside_(condition)
#ifdef WEIR_EXPECT_ABORT
#define expect_slow(condition, what) expect((condition), (what))
#else
#define expect_slow(condition, what) expect_skipped_(sizeof(!(condition)))
#endif
