/* Notices programs that restrict their own system calls. */
#include "record/sandbox.h"

#include <stdint.h>
#include <sys/prctl.h>

#include "base/sys.h"

enum { NOT_CHECKED, FREE, FILTERED };
static uint32_t began; /* how the process was when it was first asked */

/* Filters belong to threads, and are there to stay. */
static __thread bool closed __attribute__((tls_model("initial-exec")));

bool sandbox_is_closed(struct trace_header *h)
{
	const uint32_t before = __atomic_load_n(&began, __ATOMIC_RELAXED);
	if (closed || before == FILTERED)
		return closed;
	const bool filtered = sys(prctl, PR_GET_SECCOMP) > 0;
	if (before == NOT_CHECKED)
		__atomic_store_n(&began, filtered ? FILTERED : FREE, __ATOMIC_RELAXED);
	else
		closed = filtered;
	if (closed && h)
		__atomic_fetch_or(&h->optional, FEATURE_SANDBOXED, __ATOMIC_RELAXED);
	return closed;
}

bool sandbox_hides_clock(void)
{
	int how = PR_TSC_ENABLE;
	return !sys_failed(sys(prctl, PR_GET_TSC, &how)) && how == PR_TSC_SIGSEGV;
}
