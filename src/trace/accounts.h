/*
 * Whether a recording is whole: what wrappers counted when they were entered and left, apart from
 * all that records (struct thread_account), beside what is here.
 *
 * A call that was entered is here as a record or in a counter, was said to be lost, was overwritten
 * by a flight recording, or has not returned: it was left by longjmp(), or the program was killed
 * in it.  So  returned <= here + lost + overwritten <= entered.
 */
#ifndef WEIR_TRACE_ACCOUNTS_H
#define WEIR_TRACE_ACCOUNTS_H

#include "trace/trace.h"

struct accounts {
	bool known; /* the file has accounts, all of it is read, and nobody writes to it any more */
	uint64_t entered, returned;
	uint64_t kept;    /* here, lost or overwritten */
	uint64_t missing; /* returned, but not kept */
	uint64_t surplus; /* kept, but not entered */
};

/* calls: records and counted calls that are here; lost: said to be.  0 or -errno of the machine. */
int accounts_balance(
	const struct trace *t, uint64_t calls, uint64_t lost, struct accounts *ret_accounts);

#endif
