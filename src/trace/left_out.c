/* See left_out.h. */
#include "trace/left_out.h"

#include <errno.h>
#include <stdbool.h>

#include "base/search.h"
#include "base/sort.h"

#include "base/banned.h"

static int number_order(const void *one, const void *two)
{
	const struct launch_number *a = one, *b = two;
	return a->process != b->process ? ORDER(a->process, b->process)
					: ORDER(a->correlation, b->correlation);
}

int left_out_add(struct trace *t, uint32_t process, uint64_t correlation)
{
	struct launch_number *to = array_push(&t->left_out);
	if (!to)
		return -ENOMEM;
	*to = (struct launch_number){ process, correlation };
	t->left_out_activities++;
	return 0;
}

void left_out_finish(struct trace *t)
{
	size_t n = 0;
	SORT(t->left_out, number_order);
	for (size_t i = 0; i < t->left_out.n; i++)
		if (!n || number_order(&t->left_out.v[n - 1], &t->left_out.v[i]) != 0)
			t->left_out.v[n++] = t->left_out.v[i];
	t->left_out.n = n;
	t->leaves_out = n > 0;
}

static bool is_left_out(const struct trace *t, uint32_t process, uint64_t correlation)
{
	const struct launch_number key = { process, correlation };
	const size_t i = SEARCH(k, 0, t->left_out.n, number_order(&t->left_out.v[k], &key) < 0);
	return i < t->left_out.n && number_order(&t->left_out.v[i], &key) == 0;
}

void left_out_apply(const struct trace *t, struct chunk_buf *buf)
{
	const size_t each = sizeof(struct gpu_activity);
	for (size_t at = 0; buf->bytes - at >= each; at += each) {
		struct gpu_activity *w = (struct gpu_activity *)(buf->payload + at);
		if (w->valid & GPU_HAS_CORRELATION &&
			is_left_out(t, buf->ref->process, w->correlation))
			w->kind = 0;
	}
}
