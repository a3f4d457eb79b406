/* Device memory comes in chunks that are mapped behind each other.  Blocks that were freed are
 * holes, of which the smallest that fits is used again. */
#include <errno.h>
#include <inttypes.h>

#include "base/atomic.h"
#include "base/check.h"
#include "gpu/cuda_device.h"

#define CHUNK ((size_t)32 << 20) /* few handles, because mapping costs by the handle */
#define ALIGN ((size_t)512)

static const struct cu_mem_allocation_prop on_device = { .type = 1, .location = { .type = 1 } };
static const struct cu_mem_access_desc read_write = { .location = { .type = 1 }, .flags = 3 };

int gpu_space_init(
	struct gpu_space *s, struct gpu *g, void *stream, uint64_t most, struct error *err)
{
	*s = (struct gpu_space){ .gpu = g, .stream = stream };
	const int e =
		GPU_CALL(g, err, cuMemGetAllocationGranularity, &s->granularity, &on_device, 0);
	if (e)
		return e;
	s->reserved = round_up(g->bytes, s->granularity);
	const int code = GPU_CALL(g, err, cuMemAddressReserve, &s->at, s->reserved, 0, 0, 0);
	if (!code)
		gpu_budget_add(s, most);
	return code;
}

static int try_map(struct gpu_space *s, uint64_t at, struct gpu_chunk *c, struct error *err)
{
	struct gpu *g = s->gpu;
	int e = GPU_CALL(g, err, cuMemCreate, &c->handle, c->bytes, &on_device, 0);
	if (e)
		return e;
	e = GPU_CALL(g, err, cuMemMap, at, c->bytes, 0, c->handle, 0);
	if (!e) {
		e = GPU_CALL(g, err, cuMemSetAccess, at, c->bytes, &read_write, 1);
		if (e)
			g->cu.cuMemUnmap(at, c->bytes);
	}
	if (e)
		g->cu.cuMemRelease(c->handle);
	return e;
}

/* Memory for the chunk at this place of the range.  Programs beside this one may have taken what
 * the budget says is left. */
static int map_chunk(struct gpu_space *s, uint64_t at, struct gpu_chunk *c, struct error *err)
{
	int e;
	while ((e = try_map(s, at, c, err)) == -ENOMEM)
		if (gpu_budget_make_room(s->gpu, s, NULL))
			break;
	return e;
}

static void unmap(struct gpu_space *s, size_t chunks)
{
	uint64_t at = s->at;
	for (size_t i = 0; i < chunks; i++) {
		s->gpu->cu.cuMemUnmap(at, s->chunk.v[i].bytes);
		s->gpu->cu.cuMemRelease(s->chunk.v[i].handle);
		at += s->chunk.v[i].bytes;
	}
}

void gpu_space_fini(struct gpu_space *s)
{
	if (!s->at)
		return;
	if (!s->away)
		unmap(s, s->chunk.n);
	gpu_budget_remove(s);
	s->gpu->cu.cuMemAddressFree(s->at, s->reserved);
	gpu_pinned_give(s->gpu, s->kept);
	array_free(&s->chunk, &s->hole.list);
	*s = (struct gpu_space){ 0 };
}

static bool take_hole(struct gpu_holes *h, size_t bytes, uint64_t *ret)
{
	struct gpu_hole *best = NULL;
	array_each(struct gpu_hole, one, h->list)
		if (one->bytes >= bytes && (!best || one->bytes < best->bytes))
			best = one;
	if (!best)
		return false;
	*ret = best->at;
	best->at += bytes;
	best->bytes -= bytes;
	if (!best->bytes)
		*best = h->list.v[--h->list.n];
	return true;
}

static int add_chunk(struct gpu_space *s, size_t bytes, struct error *err)
{
	struct gpu_chunk c = { .bytes = bytes };
	int e = gpu_budget_take(s->gpu, s, bytes, err);
	if (e)
		return e;
	e = map_chunk(s, s->at + s->mapped, &c, err);
	if (e) {
		gpu_budget_give(s->gpu, bytes);
		return e;
	}
	*array_push(&s->chunk) = c;
	s->mapped += bytes;
	store_relaxed(&s->there, s->mapped);
	return 0;
}

static int grow(struct gpu_space *s, size_t bytes, struct error *err)
{
	const size_t least = round_up(bytes, s->granularity),
		     chunk = round_up(CHUNK, s->granularity);
	if (least > s->reserved - s->mapped)
		return error_set(
			err, -ENOMEM, "%zu bytes more are more than %s has", bytes, s->gpu->name);
	if (s->mapped && least < chunk && chunk <= s->reserved - s->mapped &&
		!add_chunk(s, chunk, NULL))
		return 0;
	return add_chunk(s, least, err);
}

int gpu_space_alloc(
	struct gpu_space *s, struct gpu_holes *own, size_t bytes, uint64_t *ret, struct error *err)
{
	if (bytes > s->reserved)
		return error_set(
			err, -ENOMEM, "%zu bytes are more than %s has", bytes, s->gpu->name);
	bytes = round_up(bytes ? bytes : 1, ALIGN);
	/* Its next owner may write to the memory that stays. */
	gpu_pinned_give(s->gpu, s->kept);
	s->kept = NULL;
	if (own && take_hole(own, bytes, ret))
		return 0;
	if (take_hole(&s->hole, bytes, ret))
		return 0;
	const int e = bytes > s->mapped - s->used ? grow(s, bytes - (s->mapped - s->used), err) : 0;
	if (e)
		return e;
	*ret = s->at + s->used;
	s->used += bytes;
	return 0;
}

void gpu_space_free(struct gpu_space *s, struct gpu_holes *own, uint64_t at, size_t bytes)
{
	struct gpu_holes *h = own ? own : &s->hole;
	bytes = round_up(bytes ? bytes : 1, ALIGN);
	for (size_t i = 0; i < h->list.n;) {
		const struct gpu_hole one = h->list.v[i];
		if (one.at + one.bytes != at && at + bytes != one.at) {
			i++;
			continue;
		}
		at = MIN(one.at, at);
		bytes += one.bytes;
		h->list.v[i] = h->list.v[--h->list.n];
	}
	*array_push(&h->list) = (struct gpu_hole){ at, bytes };
}

void gpu_space_share(struct gpu_space *s, struct gpu_holes *own)
{
	for (size_t i = 0; i < own->list.n; i++)
		gpu_space_free(s, NULL, own->list.v[i].at, own->list.v[i].bytes);
	array_free(&own->list);
}

int gpu_space_keep(struct gpu_space *s, struct error *err)
{
	struct gpu *g = s->gpu;
	if (s->kept || !s->used)
		return 0;
	int e = gpu_pinned_take(g, s->used, &s->kept, err);
	e = e ? e
	      : GPU_CALL(g, err, cuMemcpyDtoHAsync_v2, s->kept->data, s->at, s->used, s->stream);
	e = e ? e : GPU_CALL(g, err, cuStreamSynchronize, s->stream);
	if (e) {
		gpu_pinned_give(g, s->kept);
		s->kept = NULL;
	}
	return e;
}

int gpu_space_leave(struct gpu_space *s, struct error *err)
{
	const int e = gpu_space_keep(s, err);
	if (e)
		return e;
	unmap(s, s->chunk.n);
	s->away = true;
	return 0;
}

/* Each chunk is filled while the next one is mapped. */
int gpu_space_return(struct gpu_space *s, struct error *err)
{
	struct gpu *g = s->gpu;
	size_t at = 0, i = 0;
	int e = 0;
	for (; i < s->chunk.n && !e; i++) {
		struct gpu_chunk *c = &s->chunk.v[i];
		const size_t left = s->used > at ? s->used - at : 0;
		const size_t bytes = MIN(c->bytes, left);
		e = map_chunk(s, s->at + at, c, err);
		if (e)
			break;
		if (bytes)
			e = GPU_CALL(g, err, cuMemcpyHtoDAsync_v2, s->at + at,
				(char *)s->kept->data + at, bytes, s->stream);
		at += c->bytes;
	}
	const int ended = GPU_CALL(g, e ? NULL : err, cuStreamSynchronize, s->stream);
	e = e ? e : ended;
	if (e)
		unmap(s, i);
	else
		s->away = false;
	return e;
}
