/* Gives out the handles of libweirapi. */
#include "client/handle.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"

#define HANDLES 16u

/* Generation, whether the place is taken, whether the handle is open, how many are inside. */
#define TAKEN      (1ull << 31)
#define OPEN       (1ull << 30)
#define USERS      (OPEN - 1)
#define GENERATION (1ull << 32)

static struct handle handles[HANDLES];

struct handle *handle_new(void)
{
	for (struct handle *h = handles; h < handles + HANDLES; h++) {
		uint64_t state = load_acquire(&h->state);
		if (!(state & TAKEN) &&
			replace_if(&h->state, &state, state | TAKEN, acq_rel, relaxed))
			return h;
	}
	return NULL;
}

weir_sched handle_publish(struct handle *h)
{
	const uint64_t state =
		atomic_fetch_or_explicit(&h->state, OPEN, memory_order_release) | OPEN;
	return (state >> 32) << 8 | (uint64_t)(h - handles + 1);
}

struct handle *handle_enter(weir_sched number)
{
	const uint64_t place = number & 0xff, generation = number >> 8;
	if (!place || place > HANDLES)
		return NULL;
	struct handle *h = &handles[place - 1];
	uint64_t state = load_acquire(&h->state);
	do {
		if (!(state & OPEN) || state >> 32 != generation)
			return NULL;
	} while (!replace_if(&h->state, &state, state + 1, acq_rel, acquire));
	return h;
}

/* The next handle of this place is another. */
static void forget(struct handle *h, uint64_t state)
{
	struct share_file *f = load_relaxed(&h->file);
	store_relaxed(&h->file, NULL);
	store_relaxed(&h->log_level, WEIR_LOG_OFF);
	stream_pool_forget(&h->streams);
	if (f)
		share_close(f);
	store_release(&h->state, (state & ~(GENERATION - 1)) + GENERATION);
}

void handle_leave(struct handle *h)
{
	const uint64_t state = atomic_fetch_sub_explicit(&h->state, 1, memory_order_acq_rel) - 1;
	if (!(state & OPEN) && !(state & USERS))
		forget(h, state);
}

bool handle_close(struct handle *h)
{
	return atomic_fetch_and_explicit(&h->state, ~OPEN, memory_order_acq_rel) & OPEN;
}

bool handle_any(void)
{
	for (const struct handle *h = handles; h < handles + HANDLES; h++)
		if (load_acquire(&h->state) & OPEN)
			return true;
	return false;
}

int handle_reach_file(struct handle *h, struct share_file **ret_file)
{
	char path[SHARE_PATH + 8];
	const char *why;
	struct share_file *f = load_acquire(&h->file), *seen = NULL;
	*ret_file = f;
	if (f)
		return WEIR_OK;
	/* Opening it would make it. */
	const int n = snprintf(path, sizeof path, "%s/sched", h->directory);
	if (n < 0 || (size_t)n >= sizeof path || access(path, F_OK))
		return WEIR_ERROR_NO_FILE;
	f = share_open(h->directory, &why);
	if (!f)
		return WEIR_ERROR_FILE;
	if (!replace_if(&h->file, &seen, f, acq_rel, acquire)) {
		share_close(f);
		f = seen;
	}
	*ret_file = f;
	return WEIR_OK;
}

int handle_log(const struct handle *h, const char *function, int status, const char *details)
{
	const int level = h ? load_relaxed(&h->log_level) : WEIR_LOG_OFF;
	if (level < (status ? WEIR_LOG_ERRORS : WEIR_LOG_CHANGES) || (!status && !details))
		return status;
	dprintf(STDERR_FILENO, "weir: %s: %s%s%s\n", function,
		status ? weir_sched_strerror(status) : "", status && details ? ": " : "",
		details ? details : "");
	return status;
}
