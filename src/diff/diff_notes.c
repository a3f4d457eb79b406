/*
 * Sentences that a reader must know before the numbers of a comparison: data that runs lack, and
 * the source of their times.
 */
#include "diff/diff.h"

#include <inttypes.h>

__attribute__((format(printf, 2, 3))) static void note(struct diff *d, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	*array_push(&d->notes) = xvasprintf(format, ap);
	va_end(ap);
}

static const char *name_of(int side)
{
	return side == DIFF_A ? "A" : "B";
}

static void note_devices(struct diff *d)
{
	if (d->has_device[DIFF_A] == d->has_device[DIFF_B])
		return;
	note(d,
		"Only %s has GPU activities, so kernels are compared by the time of their launches on "
		"the host, and operators and phases by their time on the host.",
		name_of(d->has_device[DIFF_A] ? DIFF_A : DIFF_B));
}

static void note_samples(struct diff *d, int side)
{
	for (size_t i = 0; i < d->inputs[side].n; i++) {
		const uint32_t each = d->inputs[side].v[i].sampled;
		if (each)
			note(d, "Run %zu of %s timed one launch in %" PRIu32 ".", i + 1,
				name_of(side), each);
	}
}

static void note_sampling(struct diff *d)
{
	for (int s = 0; s < DIFF_SIDES; s++)
		note_samples(d, s);
	if ((!d->sampled[DIFF_A] && !d->sampled[DIFF_B]))
		return;
	note(d, "Sampled times of kernels include the device's wait for the launch, and "
		"totals are estimates\nwithout memcpys and memsets. Operators and phases are "
		"compared by their time on the host.");
	if (d->apart)
		note(d, "Times of the other runs include no such wait, so no kernel is judged to "
			"be faster or slower.");
}

static void note_losses(struct diff *d, int side)
{
	for (size_t i = 0; i < d->inputs[side].n; i++)
		if (d->inputs[side].v[i].lost)
			note(d, "Run %zu of %s lost calls or is damaged: its numbers are too small.",
				i + 1, name_of(side));
}

void diff_make_notes(struct diff *d)
{
	note_devices(d);
	note_sampling(d);
	for (int s = 0; s < DIFF_SIDES; s++)
		note_losses(d, s);
}
