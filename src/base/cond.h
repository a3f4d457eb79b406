/* A condition whose timed waits are until a time of CLOCK_MONOTONIC. */
#pragma once

#include <pthread.h>
#include <time.h>

static inline void cond_init_monotonic(pthread_cond_t *c)
{
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(c, &clock);
	pthread_condattr_destroy(&clock);
}
