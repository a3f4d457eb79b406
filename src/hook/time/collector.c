/* Tells the listeners of completed activities. */
#include "hook/time/collector.h"

#include <stddef.h>

#define LISTENERS 4u

static completion_fn *listeners[LISTENERS];
static uint32_t count;

bool completions_listen(completion_fn *f)
{
	const uint32_t n = __atomic_load_n(&count, __ATOMIC_RELAXED);
	if (n == LISTENERS)
		return false;
	listeners[n] = f;
	__atomic_store_n(&count, n + 1, __ATOMIC_RELEASE); /* pairs with completions_publish() */
	return true;
}

bool completions_are_wanted(void)
{
	return __atomic_load_n(&count, __ATOMIC_RELAXED) > 0;
}

bool completions_publish(const struct gpu_activity *w, const char *name)
{
	const uint32_t n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
	bool news = false;
	for (uint32_t i = 0; i < n; i++)
		news |= listeners[i](w, name);
	return news;
}

void completions_stop(void)
{
	__atomic_store_n(&count, 0, __ATOMIC_RELAXED);
}
