/* Writes the waits at the gate into the trace as ranges. */
#include "hook/sched/wait_range.h"

#include <string.h>

#include "base/bounded.h"
#include "hook/core/strings.h"
#include "hook/range/range.h"

static const char *const why[REASON_COUNT] = {
	[REASON_REQUEST] = "waits for a request",
	[REASON_SOON] = "waits for a request that is expected",
	[REASON_TURN] = "waits for another program's turn",
};

/* Stack addresses of this thread's open waits: a handler may wait in the middle of one. */
#define NESTED 4u
static __thread struct {
	uint32_t depth;
	uintptr_t frame[NESTED];
} open __attribute__((tls_model("initial-exec")));

static uint32_t text_id(const char *text)
{
	return string_id(text, strlen(text));
}

/* "pid=1234 program=server policy=fit" */
static uint32_t details(const struct member *m, uint32_t other)
{
	char text[128];
	struct bounded b = BOUNDED(text);
	const char *policy = m->file->arbiter.policy;
	if (other < SHARE_SLOTS) {
		const struct share_who *w = &m->file->slots[other].who;
		bounded_put(&b, "pid=");
		bounded_decimal(&b, w->pid);
		bounded_put(&b, " program=");
		bounded_bytes(&b, w->name, strnlen(w->name, SHARE_NAME));
		bounded_put(&b, " ");
	}
	bounded_put(&b, "policy=");
	bounded_bytes(&b, policy, strnlen(policy, sizeof m->file->arbiter.policy));
	return text_id(bounded_end(&b));
}

bool wait_range_begins(
	const struct member *m, enum rule_reason reason, uint32_t other, const void *frame)
{
	if (!why[reason] || open.depth == NESTED || !ranges_are_kept() || !ranges_wanted())
		return false;
	open.frame[open.depth++] = (uintptr_t)frame;
	range_push(&(struct range_text){ .name = text_id(why[reason]),
		.args = details(m, other),
		.scope = text_id("weir"),
		.kind = RANGE_NVTX });
	return true;
}

static const char *const ways[] = {
	[WAY_CAPPED] = "goes to fewer SMs",
	[WAY_EXPIRED] = "has waited for long enough",
	[WAY_ON_DEVICE] = "waits on the GPU",
	[WAY_SHARE] = "goes on for its share",
};

void wait_range_marks(const struct member *m, enum wait_way way, uint32_t other)
{
	if (way == WAY_FREE || !ranges_are_kept() || !ranges_wanted())
		return;
	range_mark(&(struct range_text){ .name = text_id(ways[way]),
		.args = details(m, other),
		.scope = text_id("weir"),
		.kind = RANGE_NVTX });
}

void wait_range_ends(const void *frame)
{
	while (open.depth && open.frame[open.depth - 1] <= (uintptr_t)frame) {
		open.depth--;
		range_pop(text_id("weir"));
	}
}
