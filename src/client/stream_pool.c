/* Creates streams by class and gives them out again. */

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "client/handle.h"

enum { FREE, IN_WORK, IDLE, GIVEN_OUT };
enum { NON_BLOCKING = 1 };

/* X(name here, exported symbol, parameters); the rest of what is asked for below is optional. */
#define DRIVER_FUNCTIONS(X)                                                                        \
	X(get_current, "cuCtxGetCurrent", (void **context))                                        \
	X(priority_range, "cuCtxGetStreamPriorityRange", (int *least, int *greatest))              \
	X(create, "cuStreamCreateWithPriority", (void **stream, unsigned flags, int priority))     \
	X(destroy, "cuStreamDestroy_v2", (void *stream))

struct driver {
#define MEMBER(name, symbol, parameters) int(*name) parameters;
	DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
	int (*context_id)(void *context, unsigned long long *id); /* since CUDA 12 */
};

/* Anew each time: a driver may have come in between, and its functions may be another library's. */
static bool find_driver(struct driver *d)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		return false;
#define FIND(name, symbol, parameters)                                                             \
	*(void **)&d->name = dlsym(library, symbol);                                               \
	if (!d->name)                                                                              \
		return false;
	DRIVER_FUNCTIONS(FIND)
#undef FIND
	*(void **)&d->context_id = dlsym(library, "cuCtxGetId");
	return true;
}

struct current {
	struct driver driver;
	void *context;
	uint64_t id;
};

static int find_current(struct current *c)
{
	unsigned long long id = 0;
	if (!find_driver(&c->driver)) {
		dlerror(); /* is nothing that the program should hear of */
		return WEIR_ERROR_NO_DRIVER;
	}
	if (c->driver.get_current(&c->context) || !c->context)
		return WEIR_ERROR_NO_CONTEXT;
	if (c->driver.context_id)
		c->driver.context_id(c->context, &id);
	c->id = id;
	return WEIR_OK;
}

static bool take(struct pool_stream *s, uint32_t from)
{
	return replace_if(&s->state, &from, IN_WORK, acq_rel, relaxed);
}

static void put(struct pool_stream *s, uint32_t state)
{
	store_release(&s->state, state);
}

static bool is_of(const struct pool_stream *s, const struct current *c)
{
	return load_relaxed(&s->pid) == (uint32_t)getpid() && s->context == c->context &&
	       s->context_id == c->id;
}

/* One that was returned; NULL: there is none. */
static struct pool_stream *take_idle(struct stream_pool *p, const struct current *c, uint32_t class)
{
	for (struct pool_stream *s = p->stream; s < p->stream + POOL_STREAMS; s++) {
		if (!take(s, IDLE))
			continue;
		if (is_of(s, c) && s->class == class)
			return s;
		put(s, IDLE);
	}
	return NULL;
}

/* A place for a new one: a free one, else one whose stream went with its process. */
static struct pool_stream *take_place(struct stream_pool *p)
{
	const uint32_t pid = (uint32_t)getpid();
	for (struct pool_stream *s = p->stream; s < p->stream + POOL_STREAMS; s++)
		if (take(s, FREE))
			return s;
	for (struct pool_stream *s = p->stream; s < p->stream + POOL_STREAMS; s++) {
		const uint32_t state = load_acquire(&s->state);
		if (state == IN_WORK || load_relaxed(&s->pid) == pid || !take(s, state))
			continue;
		if (load_relaxed(&s->pid) != pid)
			return s;
		put(s, state); /* another thread had it in work meanwhile */
	}
	return NULL;
}

static int create(struct pool_stream *s, const struct current *c, uint32_t class)
{
	int least = 0, greatest = 0;
	void *stream = NULL;
	if (c->driver.priority_range(&least, &greatest) ||
		c->driver.create(
			&stream, NON_BLOCKING, class == WEIR_CLASS_LATENCY ? greatest : least))
		return WEIR_ERROR_DRIVER;
	store_relaxed(&s->stream, stream);
	s->class = class;
	store_relaxed(&s->pid, (uint32_t)getpid());
	s->context = c->context;
	s->context_id = c->id;
	return WEIR_OK;
}

static int stream_pool_get(struct stream_pool *p, int class, void **ret_stream)
{
	struct current c;
	if (!ret_stream)
		return WEIR_ERROR_ARGUMENT;
	*ret_stream = NULL;
	if (class != WEIR_CLASS_LATENCY && class != WEIR_CLASS_BEST_EFFORT)
		return WEIR_ERROR_ARGUMENT;
	int status = find_current(&c);
	if (status)
		return status;
	struct pool_stream *s = take_idle(p, &c, (uint32_t) class);
	if (!s) {
		s = take_place(p);
		if (!s)
			return WEIR_ERROR_LIMIT;
		status = create(s, &c, (uint32_t) class);
	}
	*ret_stream = status ? NULL : load_relaxed(&s->stream);
	put(s, status ? FREE : GIVEN_OUT);
	return status;
}

/* A stream that is given out is in one entry, which nobody else touches. */
int stream_pool_return(struct stream_pool *p, void *stream)
{
	const uint32_t pid = (uint32_t)getpid();
	for (struct pool_stream *s = p->stream; s < p->stream + POOL_STREAMS; s++) {
		uint32_t state = load_acquire(&s->state);
		if (state == GIVEN_OUT && load_relaxed(&s->stream) == stream &&
			load_relaxed(&s->pid) == pid)
			return replace_if(&s->state, &state, IDLE, acq_rel, relaxed)
				       ? WEIR_OK
				       : WEIR_ERROR_ARGUMENT;
	}
	return WEIR_ERROR_ARGUMENT;
}

void stream_pool_destroy(struct stream_pool *p)
{
	struct current c = { .id = 0 };
	bool known = false;
	for (struct pool_stream *s = p->stream; s < p->stream + POOL_STREAMS; s++) {
		if (!take(s, IDLE))
			continue;
		if (!known && find_current(&c))
			c.context = NULL;
		known = true;
		if (c.context && is_of(s, &c))
			c.driver.destroy(load_relaxed(&s->stream));
		put(s, FREE);
	}
}

void stream_pool_forget(struct stream_pool *p)
{
	memset(p, 0, sizeof *p);
}

int weir_sched_stream_get(weir_sched handle, int sched_class, void **ret_stream)
{
	return WITH_LOG(handle, h, stream_pool_get(&h->streams, sched_class, ret_stream), NULL);
}

int weir_sched_stream_return(weir_sched handle, void *stream)
{
	return WITH_LOG(handle, h,
		stream ? stream_pool_return(&h->streams, stream) : WEIR_ERROR_ARGUMENT, NULL);
}
