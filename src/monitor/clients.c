/* Keeps the connections of the server and cuts late ones. */
#include "monitor/clients.h"
#include "base/cond.h"
#include "base/monotonic.h"
#include "base/xmalloc.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#define CUT_MS 500u /* so often the late are looked for */

struct client {
	int fd; /* -1: free */
	bool is_cut;
	uint64_t until_ns; /* CLOCK_MONOTONIC */
};

struct clients {
	pthread_t cutter;
	pthread_mutex_t lock;
	pthread_cond_t ends;
	bool is_ending;
	uint64_t patience_ns;
	uint32_t most, next; /* next: where a free place is looked for first */
	struct client client[];
};

/* The server sees the end of the connection, and closes it itself. */
static void cut_late(struct clients *all, uint64_t now)
{
	for (struct client *c = all->client; c < all->client + all->most; c++)
		if (c->fd >= 0 && !c->is_cut && now > c->until_ns) {
			c->is_cut = true;
			shutdown(c->fd, SHUT_RDWR);
		}
}

static struct timespec when(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
}

static void *cut(void *data)
{
	struct clients *all = data;
	pthread_mutex_lock(&all->lock);
	while (!all->is_ending) {
		const struct timespec then = when(monotonic_ns() + CUT_MS * 1000000u);
		pthread_cond_timedwait(&all->ends, &all->lock, &then);
		cut_late(all, monotonic_ns());
	}
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

struct clients *clients_new(uint32_t most, uint32_t patience_s)
{
	struct clients *all = xcalloc(1, sizeof *all + most * sizeof all->client[0]);
	all->most = most;
	all->patience_ns = patience_s * (uint64_t)1000000000u;
	for (uint32_t i = 0; i < most; i++)
		all->client[i].fd = -1;
	pthread_mutex_init(&all->lock, NULL);
	cond_init_monotonic(&all->ends);
	if (!pthread_create(&all->cutter, NULL, cut, all))
		return all;
	pthread_cond_destroy(&all->ends);
	pthread_mutex_destroy(&all->lock);
	free(all);
	return NULL;
}

void clients_free(struct clients *all)
{
	if (!all)
		return;
	pthread_mutex_lock(&all->lock);
	all->is_ending = true;
	pthread_cond_signal(&all->ends);
	pthread_mutex_unlock(&all->lock);
	pthread_join(all->cutter, NULL);
	pthread_cond_destroy(&all->ends);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

static struct client *find_free(struct clients *all)
{
	for (uint32_t i = 0; i < all->most; i++) {
		struct client *c = &all->client[(all->next + i) % all->most];
		if (c->fd < 0) {
			all->next = (uint32_t)(c - all->client) + 1;
			return c;
		}
	}
	return NULL;
}

struct client *client_begin(struct clients *all, int fd)
{
	pthread_mutex_lock(&all->lock);
	struct client *c = find_free(all);
	if (c)
		*c = (struct client){ .fd = fd, .until_ns = monotonic_ns() + all->patience_ns };
	pthread_mutex_unlock(&all->lock);
	return c;
}

void client_answered(struct clients *all, struct client *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&all->lock);
	c->until_ns = monotonic_ns() + all->patience_ns;
	pthread_mutex_unlock(&all->lock);
}

void client_end(struct clients *all, struct client *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&all->lock);
	c->fd = -1;
	pthread_mutex_unlock(&all->lock);
}
