/* For tests of engines: a model loaded by its file, and a run of whole tensors. */
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "engine/engine.h"
#include "gpu/cuda_device.h"

static struct error err;
static struct engine_options options;
static struct engine_run run;
static struct engine_piece piece[ENGINE_TENSORS];

static inline int load_config(const char *platform, const char *path, const struct engine_config *c,
	struct engine_model **ret)
{
	const struct engine *e = engine_find(platform, &err);
	assert_non_null(e);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	const int failed = engine_load(e, &options, c, fd, path, ret, &err);
	close(fd);
	return failed;
}

/* Nothing is given, all outputs are wanted. */
static inline void begin_run(void)
{
	memset(&run, 0, sizeof run);
	for (unsigned i = 0; i < ENGINE_TENSORS; i++)
		run.out[i].wanted = true;
}

static inline void give_pieces(
	unsigned i, enum dtype type, struct shape shape, const struct engine_piece *p, unsigned n)
{
	run.in[i] = (struct engine_input){ true, type, shape, p, n };
}

static inline void give(
	unsigned i, enum dtype type, struct shape shape, const void *data, size_t bytes)
{
	piece[i] = (struct engine_piece){
		.data = data, .bytes = bytes, .rows = shape.n ? (uint32_t)shape.dims[0] : 1
	};
	give_pieces(i, type, shape, &piece[i], 1);
}

#define SHAPE(...)                                                                                 \
	(struct shape)                                                                             \
	{                                                                                          \
		sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t),                              \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static inline void check_output(
	unsigned i, enum dtype type, struct shape shape, const void *data, size_t bytes)
{
	assert_int_equal(run.out[i].type, type);
	assert_true(shape_equal(&run.out[i].shape, &shape));
	assert_int_equal(run.out[i].bytes, bytes);
	assert_memory_equal(run.out[i].data, data, bytes);
}

static inline void check_error(int got, int want, const char *part)
{
	assert_int_equal(got, want);
	if (!strstr(err.text, part))
		fail_msg("'%s' is not in: %s", part, err.text);
}

/* As for another space that needs the room.  Spaces that are used less leave before it. */
static inline void put_away(struct gpu_space *s)
{
	while (!s->away)
		assert_int_equal(gpu_budget_make_room(s->gpu, NULL, &err), 0);
}

/* As options.cuda.  A sanitized build has no simulated driver and takes the plain one's. */
static inline bool find_simulated_driver(const char *here, const char *plain)
{
	options.cuda = access(here, R_OK) ? plain : here;
	return access(options.cuda, R_OK) == 0;
}
#define SIMULATED_DRIVER WEIR_LIB "/sim/libcuda.so.1", SOURCE "/build/lib/weir/sim/libcuda.so.1"
