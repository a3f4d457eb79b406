/*
 * Launches: what the driver checks before a kernel, occupancy, and the latency law.
 * Kernels do not execute.  A launch of B blocks takes
 *
 *	waves = ceil(B / (blocks that fit an SM * SMs))
 *	time  = launch + waves * wave * max(1, warps in an SM / 16)
 *
 * because an SM's four schedulers are busy from about sixteen warps on.
 */
#include "driver/sim.h"
#include "driver/graph.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARP = 32, BUSY_WARPS = 16, REGISTER_GRAIN = 256, MAX_CLUSTER = 8, BIG_CLUSTER = 16 };

static int least(int a, int b)
{
	return a < b ? a : b;
}

int occupancy_blocks(const struct function *function, int threads, size_t shared)
{
	int warps = (threads + WARP - 1) / WARP;
	int warp_registers = (function->k->registers * WARP + REGISTER_GRAIN - 1) / REGISTER_GRAIN *
			     REGISTER_GRAIN;
	size_t block_shared = shared + function->k->shared_bytes;

	if (threads <= 0 || threads > DEVICE_BLOCK_THREADS ||
		block_shared > DEVICE_BLOCK_SHARED_OPTIN)
		return 0;
	int blocks = least(DEVICE_SM_BLOCKS, DEVICE_SM_THREADS / WARP / warps);
	if (warp_registers)
		blocks = least(blocks, DEVICE_SM_REGISTERS / (warp_registers * warps));
	block_shared = (block_shared + DEVICE_BLOCK_RESERVED + 127) & ~(size_t)127;
	return least(blocks, (int)(DEVICE_SM_SHARED / block_shared));
}

static unsigned threads_of(const struct launch *l)
{
	return l->block[0] * l->block[1] * l->block[2];
}

uint64_t launch_cost_ns(const struct launch *l)
{
	uint64_t grid = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	int threads = (int)threads_of(l);
	int per_sm = occupancy_blocks(l->function, threads, l->shared);
	uint64_t places = (uint64_t)(per_sm ? per_sm : 1) * DEVICE_SMS;
	uint64_t waves = (grid + places - 1) / places;
	uint64_t resident = grid < places ? (grid + DEVICE_SMS - 1) / DEVICE_SMS : (uint64_t)per_sm;
	uint64_t warps = resident * (uint64_t)((threads + WARP - 1) / WARP);
	double load = warps > BUSY_WARPS ? (double)warps / BUSY_WARPS : 1;

	const uint64_t wave_ns = l->wave_ns ? l->wave_ns : script.wave_ns;
	return script.launch_ns + (uint64_t)((double)waves * (double)wave_ns * load);
}

struct law_work launch_law(const struct launch *l)
{
	const uint64_t alone = launch_cost_ns(l) - script.launch_ns;
	const int per_sm = occupancy_blocks(l->function, (int)threads_of(l), l->shared);

	return (struct law_work){
		.kind = LAW_KERNEL,
		.lead_ns = script.launch_ns,
		.alone_ns = alone ? alone : 1,
		.blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2],
		.warps = (threads_of(l) + WARP - 1) / WARP,
		.per_sm = (unsigned)(per_sm ? per_sm : 1),
	};
}

static int check_grid(const struct launch *l)
{
	if (!l->grid[0] || !l->grid[1] || !l->grid[2])
		return CUDA_ERROR_INVALID_VALUE;
	if (l->grid[0] > 2147483647u || l->grid[1] > 65535 || l->grid[2] > 65535)
		return CUDA_ERROR_INVALID_VALUE;
	if (!l->block[0] || !l->block[1] || !l->block[2])
		return CUDA_ERROR_INVALID_VALUE;
	if (l->block[0] > 1024 || l->block[1] > 1024 || l->block[2] > 64 ||
		threads_of(l) > DEVICE_BLOCK_THREADS)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads_of(l) > (unsigned)l->function->k->max_threads)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static int check_cluster(const struct launch *l)
{
	unsigned size = 1;
	int limit = l->function->non_portable_cluster ? BIG_CLUSTER : MAX_CLUSTER;

	for (int i = 0; i < 3; i++) {
		if (!l->cluster[i])
			continue;
		if (l->grid[i] % l->cluster[i] || l->cluster[i] > BIG_CLUSTER)
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
		size *= l->cluster[i];
	}
	return size > (unsigned)limit ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

static bool fits_at_once(const struct launch *l, unsigned sms)
{
	const int per_sm = occupancy_blocks(l->function, (int)threads_of(l), l->shared);

	return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] <= (uint64_t)per_sm * sms;
}

int launch_check(const struct launch *l)
{
	int r = check_grid(l);

	if (!r)
		r = check_cluster(l);
	if (r)
		return r;
	if (l->shared > (unsigned)l->function->max_dynamic_shared)
		return CUDA_ERROR_INVALID_VALUE;
	int per_sm = occupancy_blocks(l->function, (int)threads_of(l), l->shared);
	if (!per_sm)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (l->cooperative && !fits_at_once(l, DEVICE_SMS))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return CUDA_SUCCESS;
}

int launch_params_check(const struct function *function, void **params, void **extra)
{
	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (!function->k->param_count || extra)
		return CUDA_SUCCESS;
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < function->k->param_count; i++)
		if (!params[i])
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* The driver reads the parameters during the call, so does the simulator. */
static void read_params(const struct function *function, void **params)
{
	static volatile uint8_t last;

	for (size_t i = 0; params && i < function->k->param_count; i++)
		if (function->k->params[i].size)
			last = ((uint8_t *)params[i])[function->k->params[i].size - 1];
	(void)last;
}

/* The script's name may end in a star. */
static bool is_scripted(const char *name)
{
	const size_t n = strlen(script.kernel);
	if (n && script.kernel[n - 1] == '*')
		return !strncmp(name, script.kernel, n - 1);
	return !strcmp(name, script.kernel);
}

/* How long a wave lasts where the script says that a parameter tells, or 0. */
static uint64_t wave_of(const struct image_kernel *k, void **params)
{
	const size_t index = (size_t)script.kernel_param;
	uint32_t units;

	if (!script.unit_ns || !params || !is_scripted(k->name) || index >= k->param_count ||
		k->params[index].size != sizeof units)
		return 0;
	memcpy(&units, params[index], sizeof units);
	return units * script.unit_ns;
}

/*
 * The one kernel that does what it says: the library's hold (src/hook/sched/hold.c), which reads
 * words of registered memory until it may end.  Here the driver's thread does so in its place.
 */
struct hold {
	volatile uint64_t *active;
	volatile uint32_t *mode, *open;
	volatile uint64_t *ignored, *waited;
	uint64_t limit_ns;
};

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Also forgets what is to be ignored no more. */
static bool hold_waits(const struct hold *h)
{
	bool any = false;

	for (int i = 0; i < 4; i++) {
		h->ignored[i] &= h->active[i];
		any = any || h->active[i] & ~h->ignored[i];
	}
	return any && *h->mode != 0 && *h->mode != 3 && !*h->open;
}

static void hold_run(void *arg)
{
	struct hold *h = arg;
	const struct timespec nap = { 0, 5000 };
	const uint64_t since = clock_ns();
	uint64_t took = 0;

	while (hold_waits(h) && (took = clock_ns() - since) < h->limit_ns)
		nanosleep(&nap, NULL);
	for (int i = 0; i < 4 && took >= h->limit_ns; i++)
		h->ignored[i] = h->active[i];
	*h->waited = took | 1;
	free(h);
}

static int hold_start(struct stream *s, void **params)
{
	struct hold *h = calloc(1, sizeof *h);

	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	void *fields[] = { &h->active, &h->mode, &h->open, &h->ignored, &h->waited, &h->limit_ns };
	bool is_reached = true;
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		memcpy(fields[i], params[i], 8);
		is_reached = is_reached && (i == 5 || range_of(*(uint64_t *)fields[i], 8));
	}
	if (!is_reached || s->capture) {
		free(h);
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	const struct op op = { .kind = CU_GRAPH_NODE_TYPE_HOST, .host = hold_run, .user = h };
	return op_perform(s, &op);
}

static int start(struct launch *l, void *handle, void *stream, void **params, void **extra)
{
	struct stream *s;
	int r = stream_get(stream, &s);

	if (!r)
		r = function_get(handle, &l->function);
	if (r)
		return r;
	if (s->obj.ctx != l->function->obj.ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	r = launch_check(l);
	if (!r)
		r = launch_params_check(l->function, params, extra);
	if (r)
		return r;
	if (l->cooperative && s->green && !fits_at_once(l, s->green->end_sm - s->green->first_sm))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	if (!strcmp(l->function->k->name, "weir_hold") && params &&
		l->function->k->param_count == 6)
		return hold_start(s, params);
	if (!l->function->loaded && script.load_ns)
		script_wait_ns(script.load_ns);
	l->function->loaded = true;
	l->wave_ns = wave_of(l->function->k, params);
	struct op op = {
		.kind = CU_GRAPH_NODE_TYPE_KERNEL,
		.launch = *l,
		.kernel_handle = (uint64_t)handle,
	};
	if (!s->capture) {
		read_params(l->function, params);
		return op_perform(s, &op);
	}
	r = op_keep_params(&op, params, extra);
	if (!r)
		r = op_perform(s, &op);
	op_fini(&op);
	return r;
}

int sim_cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void *stream,
	void **params, void **extra)
{
	struct launch l = {
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.shared = shared,
	};

	return start(&l, function, stream, params, extra);
}

int sim_cuLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void *stream,
	void **params)
{
	struct launch l = {
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.shared = shared,
		.cooperative = true,
	};

	return start(&l, function, stream, params, NULL);
}

static int read_attribute(const struct cu_launch_attribute *a, struct launch *l)
{
	switch (a->id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		l->cooperative = a->u.value != 0;
		break;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		l->cluster[0] = a->u.cluster.x;
		l->cluster[1] = a->u.cluster.y;
		l->cluster[2] = a->u.cluster.z;
		if (!l->cluster[0] || !l->cluster[1] || !l->cluster[2])
			return CUDA_ERROR_INVALID_VALUE;
		break;
	default:
		if (a->id < 0 || a->id > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

int sim_cuLaunchKernelEx(void *config, void *function, void **params, void **extra)
{
	const struct cu_launch_config *c = config;

	if (!c || (c->attr_count && !c->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	struct launch l = {
		.grid = { c->grid_x, c->grid_y, c->grid_z },
		.block = { c->block_x, c->block_y, c->block_z },
		.shared = c->shared_bytes,
	};
	for (uint32_t i = 0; i < c->attr_count; i++) {
		int r = read_attribute(&c->attrs[i], &l);
		if (r)
			return r;
	}
	return start(&l, function, c->stream, params, extra);
}

/* The launch functions of CUDA before 4.0 keep block, shared memory and parameters aside. */
int sim_cuLaunchGridAsync(void *function, int width, int height, void *stream)
{
	struct function *f;
	int r = function_get(function, &f);

	if (r)
		return r;
	struct launch l = {
		.grid = { (unsigned)width, (unsigned)height, 1 },
		.block = { (unsigned)f->block[0], (unsigned)f->block[1], (unsigned)f->block[2] },
		.shared = f->dynamic_shared,
	};
	size_t size = f->param_bytes;
	void *extra[] = { (void *)PARAM_BUFFER_POINTER, f->params, (void *)PARAM_BUFFER_BYTES,
		&size, NULL };
	return start(&l, function, stream, NULL, extra);
}

int sim_cuLaunchGrid(void *function, int width, int height)
{
	return sim_cuLaunchGridAsync(function, width, height, NULL);
}

int sim_cuLaunch(void *function)
{
	return sim_cuLaunchGridAsync(function, 1, 1, NULL);
}

int sim_cuFuncSetBlockShape(void *function, int x, int y, int z)
{
	struct function *f;
	int r = function_get(function, &f);

	if (r)
		return r;
	if (x <= 0 || y <= 0 || z <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	f->block[0] = x;
	f->block[1] = y;
	f->block[2] = z;
	return CUDA_SUCCESS;
}

int sim_cuFuncSetSharedSize(void *function, unsigned bytes)
{
	struct function *f;
	int r = function_get(function, &f);

	if (!r)
		f->dynamic_shared = bytes;
	return r;
}

int sim_cuParamSetSize(void *function, unsigned bytes)
{
	struct function *f;
	int r = function_get(function, &f);

	if (r)
		return r;
	if (bytes > sizeof f->params)
		return CUDA_ERROR_INVALID_VALUE;
	f->param_bytes = bytes;
	return CUDA_SUCCESS;
}

int sim_cuParamSetv(void *function, int offset, void *value, unsigned bytes)
{
	struct function *f;
	int r = function_get(function, &f);

	if (r)
		return r;
	if (!value || offset < 0 || bytes > sizeof f->params ||
		(size_t)offset > sizeof f->params - bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(f->params + offset, value, bytes);
	return CUDA_SUCCESS;
}

int sim_cuParamSeti(void *function, int offset, unsigned value)
{
	return sim_cuParamSetv(function, offset, &value, sizeof value);
}

int sim_cuParamSetf(void *function, int offset, float value)
{
	return sim_cuParamSetv(function, offset, &value, sizeof value);
}

int sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *ret_blocks, void *function, int threads, size_t shared, unsigned flags)
{
	struct function *f;
	int r = function_get(function, &f);

	if (r)
		return r;
	if (!ret_blocks || threads <= 0 || flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_blocks = occupancy_blocks(f, threads, shared);
	return CUDA_SUCCESS;
}

int sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *ret_blocks, void *function, int threads, size_t shared)
{
	return sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		ret_blocks, function, threads, shared, 0);
}

int sim_cuOccupancyMaxPotentialBlockSizeWithFlags(int *ret_grid, int *ret_block, void *function,
	void *shared_of_block, size_t shared, int limit, unsigned flags)
{
	size_t (*shared_of)(int) = (size_t(*)(int))shared_of_block;
	struct function *f;
	int best = 0, best_threads = 0, best_blocks = 0;
	int r = function_get(function, &f);

	if (r)
		return r;
	if (!ret_grid || !ret_block)
		return CUDA_ERROR_INVALID_VALUE;
	int top = least(f->k->max_threads, limit > 0 ? limit : DEVICE_BLOCK_THREADS);
	int first = top >= WARP ? top / WARP * WARP : top;
	for (int threads = first; threads > 0; threads -= WARP) {
		int blocks = occupancy_blocks(f, threads, shared_of ? shared_of(threads) : shared);
		if (blocks * threads <= best)
			continue;
		best = blocks * threads;
		best_threads = threads;
		best_blocks = blocks;
	}
	*ret_block = best_threads;
	*ret_grid = best_blocks * DEVICE_SMS;
	return CUDA_SUCCESS;
}

int sim_cuOccupancyMaxPotentialBlockSize(int *ret_grid, int *ret_block, void *function,
	void *shared_of_block, size_t shared, int limit)
{
	return sim_cuOccupancyMaxPotentialBlockSizeWithFlags(
		ret_grid, ret_block, function, shared_of_block, shared, limit, 0);
}

int sim_cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *ret_bytes, void *function, int blocks, int threads)
{
	struct function *f;
	int r = function_get(function, &f);

	if (r)
		return r;
	if (!ret_bytes || blocks <= 0 || threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	size_t each = DEVICE_SM_SHARED / (size_t)blocks;
	size_t taken = DEVICE_BLOCK_RESERVED + f->k->shared_bytes;
	*ret_bytes = each > taken ? (each - taken) & ~(size_t)127 : 0;
	return CUDA_SUCCESS;
}

int sim_cuOccupancyMaxPotentialClusterSize(int *ret_size, void *function, void *config)
{
	struct function *f;
	int r = function_get(function, &f);

	if (r)
		return r;
	if (!ret_size || !config)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_size = f->non_portable_cluster ? BIG_CLUSTER : MAX_CLUSTER;
	return CUDA_SUCCESS;
}

int sim_cuOccupancyMaxActiveClusters(int *ret_clusters, void *function, void *config)
{
	const struct cu_launch_config *c = config;
	struct function *f;
	unsigned size = 1;
	int r = function_get(function, &f);

	if (r)
		return r;
	if (!ret_clusters || !c || (c->attr_count && !c->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < c->attr_count; i++)
		if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			size = c->attrs[i].u.cluster.x * c->attrs[i].u.cluster.y *
			       c->attrs[i].u.cluster.z;
	if (!size || size > (f->non_portable_cluster ? BIG_CLUSTER : MAX_CLUSTER))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	const int threads = (int)(c->block_x * c->block_y * c->block_z);
	const int per_sm = occupancy_blocks(f, threads, c->shared_bytes);
	*ret_clusters = per_sm * DEVICE_SMS / (int)size;
	return CUDA_SUCCESS;
}
