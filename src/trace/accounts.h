/*
 * Checks that a recording is whole. Wrappers count entered and left calls apart from all recording
 * (struct thread_account), and this module compares the counts with the trace.
 *
 * An entered call is a record or a count, is known to be lost, was overwritten in a flight
 * recording, or has not returned. So  returned <= here + lost + overwritten <= entered.
 */
#pragma once

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
