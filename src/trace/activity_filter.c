/* Leaves out GPU activities that do not belong to a recording. */
#include "trace/activity_filter.h"

#include "base/search.h"
#include "base/sort.h"

static int number_order(const void *one, const void *two)
{
	const struct launch_number *a = one, *b = two;
	return a->process != b->process ? ORDER(a->process, b->process)
					: ORDER(a->correlation, b->correlation);
}

void activity_filter_add(struct trace *t, uint32_t process, uint64_t correlation)
{
	*array_push(&t->excluded) = (struct launch_number){ process, correlation };
	t->excluded_activities++;
}

void activity_filter_finish(struct trace *t)
{
	size_t n = 0;
	SORT(t->excluded, number_order);
	for (size_t i = 0; i < t->excluded.n; i++)
		if (!n || number_order(&t->excluded.v[n - 1], &t->excluded.v[i]) != 0)
			t->excluded.v[n++] = t->excluded.v[i];
	t->excluded.n = n;
	t->leaves_out = n > 0;
}

static bool is_excluded(const struct trace *t, uint32_t process, uint64_t correlation)
{
	const struct launch_number key = { process, correlation };
	const size_t i = SEARCH(k, 0, t->excluded.n, number_order(&t->excluded.v[k], &key) < 0);
	return i < t->excluded.n && number_order(&t->excluded.v[i], &key) == 0;
}

void activity_filter_apply(const struct trace *t, struct chunk_buf *buf)
{
	const size_t each = sizeof(struct gpu_activity);
	for (size_t at = 0; buf->bytes - at >= each; at += each) {
		struct gpu_activity *w = (struct gpu_activity *)(buf->payload + at);
		if (w->valid & GPU_HAS_CORRELATION &&
			is_excluded(t, buf->ref->process, w->correlation))
			w->kind = 0;
	}
}
