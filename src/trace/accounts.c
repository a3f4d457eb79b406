/* Checks that a recording is whole. */
#include "trace/accounts.h"

#include "base/atomic.h"
#include "record/writer.h"

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
	struct chunk_buf buf = { 0 };
	size_t at = 0;
	int found;
	while ((found = trace_next(t, CHUNK_ACCOUNTS, &at, &buf, NULL)) == 1) {
		const struct thread_account *of = (const struct thread_account *)buf.payload;
		for (size_t n = buf.bytes / sizeof *of; n; n--, of++) {
			a->entered += of->entered;
			a->returned += of->returned;
		}
	}
	return found;
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
	a.missing = a.returned > a.kept ? a.returned - a.kept : 0;
	/* Overwriting is said before it is done, so a program that was killed may have said too
	 * much. */
	if (t->header.mode == TRACE_FILE)
		a.surplus = a.kept > a.entered ? a.kept - a.entered : 0;
	*ret_accounts = a;
	return 0;
}
