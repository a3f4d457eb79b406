/* Checks that a recording is whole. */
#include "trace/accounts.h"

#include "base/atomic.h"
#include "record/writer.h"
#include "trace/activity.h"

static bool is_written_to(const struct trace *t)
{
	if (t->header.state == TRACE_FINISHED)
		return false;
	if (t->header.form == TRACE_PACKED)
		return true; /* what a flight recording held at some moment */
	for (size_t i = 0; i < t->processes.n; i++)
		if (t->processes.v[i].pid &&
			process_start_of(t->processes.v[i].pid) == t->processes.v[i].start)
			return true;
	return false;
}

static int add_accounts(const struct trace *t, struct accounts *a)
{
	struct cursor at = { .t = t };
	for (struct thread_account of; trace_next_account(&at, &of);) {
		a->entered += of.entered;
		a->returned += of.returned;
	}
	return at.error;
}

int accounts_balance(
	const struct trace *t, uint64_t calls, uint64_t lost, struct accounts *ret_accounts)
{
	struct accounts a = { .known = load_relaxed(&t->header.optional) & FEATURE_ACCOUNTS &&
				       !t->cut && !is_written_to(t) };
	*ret_accounts = a;
	if (!a.known)
		return 0;
	a.entered = a.returned = load_relaxed(&t->header.unaccounted);
	const int e = add_accounts(t, &a);
	if (e)
		return e;
	a.kept = calls + lost + load_relaxed(&t->header.overwritten);
	a.missing = sat_sub(a.returned, a.kept);
	/* Overwriting is said before it is done, so a program that was killed may have said too
	 * much.  A damaged file may have lost accounts. */
	if (t->header.mode == TRACE_FILE && !t->damage_count)
		a.surplus = sat_sub(a.kept, a.entered);
	*ret_accounts = a;
	return 0;
}
