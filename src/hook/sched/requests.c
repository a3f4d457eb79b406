/*
 * Begins and ends declared requests, and defines the functions that libweirapi finds by name in the
 * process.
 */
#include "hook/sched/requests.h"

#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "hook/core/config.h"
#include "hook/core/process.h"
#include "hook/sched/member.h"
#include "hook/sched/request_table.h"
#include "hook/sched/sched.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC uint64_t weir_hook_request_begin(uint64_t deadline_ns);
PUBLIC int weir_hook_request_end(uint64_t name);
PUBLIC void weir_hook_requests_by_work(void);
PUBLIC void weir_hook_deadline(uint64_t ns);
PUBLIC uint64_t weir_hook_deadline_now(void);
PUBLIC const char *weir_hook_share_directory(void);
PUBLIC int weir_hook_slot(uint32_t number, uint32_t *ret_slot);
PUBLIC struct trace_header *weir_hook_trace(void);

static struct request_table table;
static _Atomic uint32_t said;
static struct {
	_Atomic uint32_t is_set;
	_Atomic uint64_t ns;
} own_deadline; /* in place of the one in WEIR */

bool requests_are_said(void)
{
	return load_relaxed(&said) || *config_get()->request_range;
}

bool requests_hold(void)
{
	return request_table_holds(&table, monotonic_ns(), config_get()->self.max_wait_ns);
}

static uint64_t program_deadline(void)
{
	if (load_acquire(&own_deadline.is_set))
		return load_relaxed(&own_deadline.ns);
	return config_get()->self.deadline_ns;
}

/* A policy adds it to the begin of the program's last request. */
static void publish_deadline(struct member *m)
{
	const uint64_t begun = load_relaxed(&m->slot->work.begun_ns);
	const uint64_t at =
		request_table_deadline(&table, monotonic_ns(), config_get()->self.max_wait_ns);
	const uint64_t ns = !at ? program_deadline() : at > begun ? at - begun : 1;
	store_relaxed(&m->slot->who.deadline_ns, ns);
}

static bool is_sharing(void)
{
	return process_is_started() && load_relaxed(&hook_hot.gate);
}

/* On each device; of a process that has come to none yet the first launch says it. */
static void enter_members(void)
{
	const int kept = errno;
	member_current();
	each_member(m) {
		sched_enter_request(m);
		publish_deadline(m);
	}
	errno = kept;
}

uint64_t request_begin(uint64_t deadline_ns)
{
	const struct config *c = config_get();
	if (!c->sched)
		return 0;
	const uint64_t name =
		request_table_open(&table, monotonic_ns(), deadline_ns, c->self.max_wait_ns);
	if (!name)
		return 0;
	atomic_store_explicit(&said, 1, memory_order_seq_cst);
	if (is_sharing())
		enter_members();
	return name;
}

bool request_end(uint64_t name)
{
	uint64_t begun;
	const int kept = errno;
	if (!request_table_close(&table, name, &begun))
		return false;
	const uint64_t took = monotonic_ns() - begun;
	if (is_sharing())
		each_member(m) {
			if (member_is_latency(m))
				sched_tell_request(m, took);
			sched_leave_request(m);
			publish_deadline(m);
		}
	errno = kept;
	return true;
}

/* The table is the parent's. */
void requests_forget(void)
{
	memset(&table, 0, sizeof table);
	store_relaxed(&said, 0);
	store_relaxed(&own_deadline.is_set, 0);
}

uint64_t weir_hook_request_begin(uint64_t deadline_ns)
{
	return request_begin(deadline_ns);
}

/* -EINVAL: it has ended, or there was none of that name. */
int weir_hook_request_end(uint64_t name)
{
	return request_end(name) ? 0 : -EINVAL;
}

/* Requests are again what the streams say; those that are open end uncounted. */
void weir_hook_requests_by_work(void)
{
	if (*config_get()->request_range) /* they stay what the ranges say */
		return;
	memset(&table, 0, sizeof table);
	atomic_store_explicit(&said, 0, memory_order_seq_cst);
	if (is_sharing())
		each_member(m)
			sched_leave_request(m);
}

/* The deadline of requests that have none of their own; 0: none. */
void weir_hook_deadline(uint64_t ns)
{
	store_relaxed(&own_deadline.ns, ns);
	store_release(&own_deadline.is_set, 1);
	if (is_sharing())
		each_member(m)
			publish_deadline(m);
}

uint64_t weir_hook_deadline_now(void)
{
	return program_deadline();
}

/* NULL: the process does not share a GPU. */
const char *weir_hook_share_directory(void)
{
	const struct config *c = config_get();
	return c->sched ? c->share : NULL;
}

/* The slot of the process's number-th device; joins that of the current context, if it can.
 * -EAGAIN: it has joined none yet; -ENOENT: no more; -EPERM: it doesn't share a GPU. */
int weir_hook_slot(uint32_t number, uint32_t *ret_slot)
{
	const int kept = errno;
	uint32_t seen = 0;
	if (!config_get()->sched)
		return -EPERM;
	if (is_sharing())
		member_current();
	errno = kept;
	if (is_sharing())
		each_member(m) {
			if (seen++ != number)
				continue;
			*ret_slot = m->index;
			return 0;
		}
	return seen ? -ENOENT : -EAGAIN;
}

/* NULL: calls are not kept, or not yet. */
struct trace_header *weir_hook_trace(void)
{
	return process_is_started() ? hook_recorder.header : NULL;
}
