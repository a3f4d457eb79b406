/* Samples NVML in a thread of the recording command. */
#include "nvml/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/cond.h"
#include "base/sys.h"
#include "base/xmalloc.h"
#include "record/chunk.h"

struct sampler {
	struct nvml *nvml;
	struct recorder to;
	uint64_t interval_ns;
	uint64_t written;
	struct chunk_header *chunk; /* open, of TRACE_GRAIN bytes; or NULL */
	uint32_t used;              /* bytes of it */
	pthread_t thread;
	pthread_mutex_t lock; /* of stop */
	pthread_cond_t wake;
	bool stop;
};

static void close_chunk(struct sampler *s)
{
	if (!s->chunk)
		return;
	s->chunk->last = clock_pair_now(s->to.header->clock);
	chunk_close(&s->to, &(struct mapped){ .chunk = s->chunk, .bytes = TRACE_GRAIN }, s->used);
	munmap(s->chunk, TRACE_GRAIN);
	s->chunk = NULL;
}

/* A chunk with room for one more; false: the file has none, and the sample is left out. */
static bool has_room(struct sampler *s)
{
	if (s->chunk && s->used + sizeof(struct gpu_sample) <= TRACE_GRAIN - CHUNK_PAYLOAD)
		return true;
	close_chunk(s);
	s->used = 0;
	s->chunk = recorder_chunk(&s->to, CHUNK_SAMPLES, TRACE_GRAIN, (uint32_t)sys(gettid));
	return s->chunk;
}

static void keep(struct sampler *s, const struct gpu_sample *sample)
{
	if (!has_room(s))
		return;
	char *at = (char *)s->chunk + CHUNK_PAYLOAD + s->used;
	struct gpu_sample *to = (struct gpu_sample *)at;
	const uint32_t valid = sample->valid;
	*to = *sample;
	to->valid = 0;
	store_release(shared(&to->valid), valid);
	s->used += sizeof *to;
	if (++s->written % SAMPLES_DOUBLE == 0)
		s->interval_ns *= 2;
}

static void sample_all(struct sampler *s)
{
	struct gpu_sample sample;
	for (unsigned gpu = 0; gpu < nvml_count(s->nvml); gpu++) {
		nvml_sample(s->nvml, gpu, NVML_ALL, &sample);
		if (sample.valid)
			keep(s, &sample);
	}
}

/* Until the next sample is due; true when it is to stop. */
static bool wait_until(struct sampler *s, const struct timespec *due)
{
	pthread_mutex_lock(&s->lock);
	while (!s->stop && pthread_cond_timedwait(&s->wake, &s->lock, due) != ETIMEDOUT)
		;
	const bool stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return stop;
}

static void *work(void *data)
{
	struct sampler *s = data;
	struct timespec due;
	do {
		clock_gettime(CLOCK_MONOTONIC, &due);
		sample_all(s);
		const uint64_t ns = (uint64_t)due.tv_nsec + s->interval_ns;
		due.tv_sec += (time_t)(ns / 1000000000u);
		due.tv_nsec = (long)(ns % 1000000000u);
	} while (!wait_until(s, &due));
	sample_all(s); /* the end, of programs shorter than the interval too */
	close_chunk(s);
	return NULL;
}

int sampler_start(
	struct nvml *n, const struct recorder *to, uint64_t interval_ns, struct sampler **ret_s)
{
	struct sampler *s = xcalloc(1, sizeof *s);
	s->nvml = n;
	s->to = *to;
	s->interval_ns = interval_ns;
	pthread_mutex_init(&s->lock, NULL);
	cond_init_monotonic(&s->wake);
	const int e = -pthread_create(&s->thread, NULL, work, s);
	if (e) {
		free(s);
		return e;
	}
	*ret_s = s;
	return 0;
}

void sampler_stop(struct sampler *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
