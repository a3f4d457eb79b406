/* Device memory comes in chunks that are mapped behind each other.  Blocks that were freed are
 * holes, of which the smallest that fits is used again. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "gpu/cuda_device.h"

#include "base/banned.h"

#define CHUNK ((size_t)32 << 20) /* few handles, because mapping costs by the handle */
#define ALIGN ((size_t)512)

static const struct cu_mem_allocation_prop on_device = { .type = 1, .location = { .type = 1 } };
static const struct cu_mem_access_desc read_write = { .location = { .type = 1 }, .flags = 3 };

static size_t round_up(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

int gpu_space_init(struct gpu_space *s, struct gpu *g, struct error *err)
{
	*s = (struct gpu_space){ .gpu = g };
	const int e =
		GPU_CALL(g, err, cuMemGetAllocationGranularity, &s->granularity, &on_device, 0);
	if (e)
		return e;
	s->reserved = round_up(g->bytes, s->granularity);
	return GPU_CALL(g, err, cuMemAddressReserve, &s->at, s->reserved, 0, 0, 0);
}

/* Memory for the chunk at this place of the range. */
static int map_chunk(struct gpu_space *s, uint64_t at, struct gpu_chunk *c, struct error *err)
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
	s->gpu->cu.cuMemAddressFree(s->at, s->reserved);
	gpu_pinned_give(s->gpu, s->kept);
	array_free(&s->chunk);
	array_free(&s->hole.list);
	*s = (struct gpu_space){ 0 };
}

static bool take_hole(struct gpu_holes *h, size_t bytes, uint64_t *ret)
{
	struct gpu_hole *best = NULL;
	for (size_t i = 0; i < h->list.n; i++) {
		struct gpu_hole *one = &h->list.v[i];
		if (one->bytes >= bytes && (!best || one->bytes < best->bytes))
			best = one;
	}
	if (!best)
		return false;
	*ret = best->at;
	best->at += bytes;
	best->bytes -= bytes;
	if (!best->bytes)
		*best = h->list.v[--h->list.n];
	return true;
}

static int grow(struct gpu_space *s, size_t bytes, struct error *err)
{
	struct gpu_chunk c = { .bytes = round_up(bytes, s->granularity) };
	if (s->mapped && c.bytes < CHUNK)
		c.bytes = round_up(CHUNK, s->granularity);
	if (c.bytes > s->reserved - s->mapped)
		return error_set(
			err, -ENOMEM, "%zu bytes more are more than %s has", bytes, s->gpu->name);
	const int e = map_chunk(s, s->at + s->mapped, &c, err);
	if (e)
		return e;
	*array_push(&s->chunk) = c;
	s->mapped += c.bytes;
	return 0;
}

int gpu_space_alloc(
	struct gpu_space *s, struct gpu_holes *own, size_t bytes, uint64_t *ret, struct error *err)
{
	if (bytes > s->reserved)
		return error_set(
			err, -ENOMEM, "%zu bytes are more than %s has", bytes, s->gpu->name);
	bytes = round_up(bytes ? bytes : 1, ALIGN);
	/* Whoever gets it may write what stays. */
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
		at = one.at < at ? one.at : at;
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

int gpu_space_leave(struct gpu_space *s, void *stream, struct error *err)
{
	struct gpu *g = s->gpu;
	const bool fresh = !s->kept;
	int e = 0;
	if (s->away || !s->chunk.n)
		return 0;
	if (fresh) {
		e = gpu_pinned_take(g, s->used, &s->kept, err);
		e = e ? e
		      : GPU_CALL(g, err, cuMemcpyDtoHAsync_v2, s->kept->data, s->at, s->used,
				stream);
	}
	/* The copies of its last return may be under way too. */
	e = e ? e : GPU_CALL(g, err, cuStreamSynchronize, stream);
	if (e && fresh) {
		gpu_pinned_give(g, s->kept);
		s->kept = NULL;
	}
	if (e)
		return e;
	unmap(s, s->chunk.n);
	s->away = true;
	return 0;
}

int gpu_space_return(struct gpu_space *s, void *stream, struct error *err)
{
	uint64_t at = s->at;
	if (!s->away)
		return 0;
	for (size_t i = 0; i < s->chunk.n; i++) {
		const int e = map_chunk(s, at, &s->chunk.v[i], err);
		if (e) {
			unmap(s, i);
			return e;
		}
		at += s->chunk.v[i].bytes;
	}
	const int e =
		GPU_CALL(s->gpu, err, cuMemcpyHtoDAsync_v2, s->at, s->kept->data, s->used, stream);
	if (e)
		unmap(s, s->chunk.n);
	else
		s->away = false;
	return e;
}
