/* Tells the listeners of completed activities. */
#include "hook/time/collector.h"

#include <stddef.h>

#include "base/atomic.h"

#define LISTENERS 4u

static completion_fn *listeners[LISTENERS];
static _Atomic uint32_t count;

bool completions_listen(completion_fn *f)
{
	const uint32_t n = load_relaxed(&count);
	if (n == LISTENERS)
		return false;
	listeners[n] = f;
	store_release(&count, n + 1); /* pairs with completions_publish() */
	return true;
}

bool completions_are_wanted(void)
{
	return load_relaxed(&count) > 0;
}

bool completions_publish(const struct gpu_activity *w, const char *name)
{
	const uint32_t n = load_acquire(&count);
	bool news = false;
	for (uint32_t i = 0; i < n; i++)
		news |= listeners[i](w, name);
	return news;
}

void completions_stop(void)
{
	store_relaxed(&count, 0);
}
