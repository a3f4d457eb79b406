/* Notices programs that restrict their own system calls. */
#include "record/sandbox.h"

#include <stdint.h>
#include <sys/prctl.h>

#include "base/atomic.h"
#include "base/sys.h"

enum { NOT_CHECKED, FREE, FILTERED };
static _Atomic uint32_t began; /* how the process was when it was first asked */

/* Filters belong to threads, and are there to stay. */
static __thread bool closed __attribute__((tls_model("initial-exec")));

bool sandbox_is_closed(struct trace_header *h)
{
	const uint32_t before = load_relaxed(&began);
	if (closed || before == FILTERED)
		return closed;
	const bool filtered = sys(prctl, PR_GET_SECCOMP) > 0;
	if (before == NOT_CHECKED)
		store_relaxed(&began, filtered ? FILTERED : FREE);
	else
		closed = filtered;
	if (closed && h)
		atomic_fetch_or_explicit(&h->optional, FEATURE_SANDBOXED, memory_order_relaxed);
	return closed;
}

bool sandbox_hides_clock(void)
{
	int how = PR_TSC_ENABLE;
	return !sys_failed(sys(prctl, PR_GET_TSC, &how)) && how == PR_TSC_SIGSEGV;
}
