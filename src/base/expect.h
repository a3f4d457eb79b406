/*
 * Checks that stay on: what must hold if weir itself has no mistake.  What comes from outside, as
 * the bytes of a file do, is looked at with plain conditions; what the code around proves is an
 * assert().
 *
 *	expect(sum == total, "the rows add up to the total");
 *	if (!expect(at <= n, "the index is in the table"))
 *		return -EINVAL;
 *
 * What is broken is said by its opposite: the sentence is what should hold.  In builds for tests
 * (cmake -DWEIR_EXPECT=abort, and all Debug ones) a broken one is said on stderr, with file and
 * line, and the program aborts.  Else it is counted, the value is false, and the program goes on;
 * weir says at its end that what it printed may be wrong.  Any thread.
 *
 * expect_slow() costs more than a comparison or two: elsewhere than in builds for tests it is not
 * evaluated, and true.
 *
 * expect_inside() is for what runs inside other people's programs (src/record, src/predict), where
 * nothing may be printed and nothing may end the program: false, and its caller takes the way on
 * which there is no room, which says in the trace's header what was lost, or learns nothing.  In
 * builds for tests it traps.
 */
#ifndef WEIR_BASE_EXPECT_H
#define WEIR_BASE_EXPECT_H

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

#endif
