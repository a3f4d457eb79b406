/*
 * The keeper's thread does what takes long: it loads and unloads models, looks at the repository,
 * and frees versions whose last request has ended.
 */
#include <errno.h>
#include <malloc.h>

#include "serve/internal.h"

#define TRIM_NS 5000000000u

void keeper_ask(struct server *s, struct exchange *x)
{
	x->next = NULL;
	x->away = true;
	pthread_mutex_lock(&s->keeper_lock);
	*s->asked_end = x;
	s->asked_end = &x->next;
	pthread_cond_signal(&s->keeper_work);
	pthread_mutex_unlock(&s->keeper_lock);
}

void keeper_bury(struct server *s, struct version *v)
{
	pthread_mutex_lock(&s->keeper_lock);
	v->next_dead = s->dead;
	s->dead = v;
	pthread_cond_signal(&s->keeper_work);
	pthread_mutex_unlock(&s->keeper_lock);
}

void serve_reread(struct server *s)
{
	pthread_mutex_lock(&s->keeper_lock);
	s->reread = true;
	pthread_cond_signal(&s->keeper_work);
	pthread_mutex_unlock(&s->keeper_lock);
}

static void bury(struct server *s, struct version *dead)
{
	for (struct version *v = dead, *next; v; v = next) {
		next = v->next_dead;
		version_free(s, v);
	}
	/* A model's memory is large, and the next one may be another process's. */
	if (dead)
		malloc_trim(0);
}

static void scan(struct server *s, bool settled)
{
	static struct error last; /* the same trouble is told once */
	struct error err = { "" };
	if (models_scan(s, settled, &err) == 0)
		err.text[0] = 0;
	if (strcmp(err.text, last.text) != 0 && err.text[0])
		fprintf(stderr, "weir serve: %s\n", err.text);
	last = err;
}

/* Waits until there is something to do, and until then at most. */
static void wait_for_work(struct server *s, uint64_t until_ns)
{
	const struct timespec at = { (time_t)(until_ns / 1000000000u),
		(long)(until_ns % 1000000000u) };
	while (!s->asked && !s->dead && !s->reread && !s->keeper_stops)
		if (pthread_cond_timedwait(&s->keeper_work, &s->keeper_lock, &at) == ETIMEDOUT)
			return;
}

static void *keeper_run(void *data)
{
	struct server *s = data;
	const bool polls = s->o.control == CONTROL_POLL;
	uint64_t trim_ns = monotonic_ns() + TRIM_NS;
	uint64_t look_ns = polls ? monotonic_ns() + s->o.poll_ns : UINT64_MAX;
	pthread_mutex_lock(&s->keeper_lock);
	while (!s->keeper_stops || s->dead || s->asked) {
		wait_for_work(s, MIN(look_ns, trim_ns));
		const bool asked = s->reread;
		struct exchange *x = s->asked;
		struct version *dead = s->dead;
		if (x) {
			s->asked = x->next;
			if (!s->asked)
				s->asked_end = &s->asked;
		}
		s->dead = NULL;
		s->reread = false;
		pthread_mutex_unlock(&s->keeper_lock);
		bury(s, dead);
		if (x) {
			control_run(x);
			exchange_return(x);
		}
		if (asked || monotonic_ns() >= look_ns) {
			scan(s, asked);
			look_ns = polls ? monotonic_ns() + s->o.poll_ns : UINT64_MAX;
		}
		if (monotonic_ns() >= trim_ns) {
			engine_trim();
			trim_ns = monotonic_ns() + TRIM_NS;
		}
		pthread_mutex_lock(&s->keeper_lock);
	}
	pthread_mutex_unlock(&s->keeper_lock);
	return NULL;
}

int keeper_start(struct server *s, struct error *err)
{
	const int code = pthread_create(&s->keeper, NULL, keeper_run, s);
	s->keeper_runs = code == 0;
	return code ? error_set(err, -code, "the thread that loads models does not start") : 0;
}

void keeper_stop(struct server *s)
{
	pthread_mutex_lock(&s->keeper_lock);
	s->keeper_stops = true;
	pthread_cond_signal(&s->keeper_work);
	pthread_mutex_unlock(&s->keeper_lock);
	if (s->keeper_runs)
		pthread_join(s->keeper, NULL);
}

void keeper_bury_all(struct server *s)
{
	bury(s, s->dead);
	s->dead = NULL;
}
