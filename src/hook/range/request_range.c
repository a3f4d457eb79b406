/* Begins and ends requests with NVTX ranges. */
#include "hook/range/request_range.h"

#include <string.h>

#include "base/atomic.h"
#include "hook/core/hook_parts.h"

static __thread struct {
	uint64_t request; /* 0: none was pushed */
	const void *domain;
	uint32_t inner; /* ranges of the same domain that were pushed since, and not popped */
} pushed __attribute__((tls_model("initial-exec")));

bool request_range_is(const char *text, size_t bytes)
{
	const char *name = config_get()->request_range;
	return strlen(name) == bytes && !memcmp(name, text, bytes);
}

static void end_pushed(void)
{
	const uint64_t request = pushed.request;
	pushed.request = 0;
	hook_above.request_end(request);
}

void request_range_push(const void *domain, bool named)
{
	if (!named) {
		pushed.inner += pushed.request && pushed.domain == domain;
		return;
	}
	const uint64_t before = pushed.request;
	pushed.request = 0;
	pushed.domain = domain;
	pushed.inner = 0;
	pushed.request = hook_above.request_begin(0);
	hook_above.request_end(before); /* so that the process stays inside */
}

void request_range_pop(const void *domain)
{
	if (!pushed.request || pushed.domain != domain)
		return;
	if (pushed.inner)
		pushed.inner--;
	else
		end_pushed();
}

/* These requests start and end in any thread. */
#define IS_REQUEST (1ull << 63) /* spans are counted from 1 */

static _Atomic uint64_t spans[OPEN_REQUESTS]; /* by the place of a request */

uint64_t request_range_start(uint64_t span)
{
	const uint64_t request = hook_above.request_begin(0);
	if (!request || request & IS_REQUEST)
		return span;
	store_relaxed(&spans[request % OPEN_REQUESTS], span);
	return request | IS_REQUEST;
}

uint64_t request_range_stop(uint64_t id)
{
	if (!(id & IS_REQUEST))
		return id;
	const uint64_t request = id & ~IS_REQUEST;
	const uint64_t span = load_relaxed(&spans[request % OPEN_REQUESTS]);
	return hook_above.request_end(request) ? span : 0;
}
