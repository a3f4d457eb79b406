/*
 * Fuzzes kernels.json. The driver is a double that answers yes, and checks what a model asks of
 * it: no copy and no fill leaves the model's memory, and no launch is without threads. The folder
 * has two files, "image" and "data" (16 bytes).
 */
#define WEIR_JANSSON 1
#include "engine/kernel_list.c"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SPACE ((uint64_t)1 << 40)

static const struct kernels *loaded;

static void must(bool holds)
{
	if (!holds)
		abort();
}

#define YES(name, parameters)                                                                      \
	static int name parameters                                                                 \
	{                                                                                          \
		return 0;                                                                          \
	}
GPU_FUNCTIONS(YES)
#undef YES

static int granularity(size_t *ret, const struct cu_mem_allocation_prop *prop, int option)
{
	*ret = 1 << 21;
	return 0;
}

static int reserve(uint64_t *ret, size_t bytes, size_t align, uint64_t hint, uint64_t flags)
{
	*ret = SPACE;
	return 0;
}

static int load_data(void **ret, const void *image)
{
	*ret = &cuModuleLoadData;
	return 0;
}

static int get_function(void **ret, void *module, const char *name)
{
	*ret = &cuModuleGetFunction;
	return *name ? 0 : 500;
}

static int error_name(int code, const char **ret)
{
	*ret = "CUDA_ERROR_NOT_FOUND";
	return 0;
}

static void must_be_inside(uint64_t at, size_t bytes)
{
	const struct gpu_space *s = &loaded->gpu.space;
	must(at >= s->at && at - s->at <= s->used && bytes <= s->used - (at - s->at));
}

static int copy_in(uint64_t to, const void *from, size_t bytes, void *stream)
{
	must_be_inside(to, bytes);
	return 0;
}

static int copy(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	must_be_inside(to, bytes);
	must_be_inside(from, bytes);
	return 0;
}

static int fill(uint64_t to, unsigned char value, size_t bytes, void *stream)
{
	must_be_inside(to, bytes);
	return 0;
}

static int start(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void *stream,
	void **arguments, void **extra)
{
	must(grid_x && grid_y && grid_z && block_x && block_y && block_z);
	return 0;
}

static struct gpu gpu = {
#define POINTER(name, parameters) .cu.name = name,
	GPU_FUNCTIONS(POINTER)
#undef POINTER
		.bytes = (size_t)1 << 32,
	.name = "double",
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static void make_gpu(void)
{
	gpu.cu.cuMemGetAllocationGranularity = granularity;
	gpu.cu.cuMemAddressReserve = reserve;
	gpu.cu.cuModuleLoadData = load_data;
	gpu.cu.cuModuleGetFunction = get_function;
	gpu.cu.cuGetErrorName = error_name;
	gpu.cu.cuMemcpyHtoDAsync_v2 = copy_in;
	gpu.cu.cuMemcpyDtoDAsync_v2 = copy;
	gpu.cu.cuMemsetD8Async = fill;
	gpu.cu.cuLaunchKernel = start;
	gpu_budget_init(&gpu.budget);
}

static char folder[] = "/tmp/fuzz-kernels-XXXXXX";
static int folder_fd;

static void put(const char *name, const char *text, size_t n)
{
	const int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0 && write(fd, text, n) == (ssize_t)n && close(fd) == 0);
}

static void remove_folder(void)
{
	unlinkat(folder_fd, "image", 0);
	unlinkat(folder_fd, "data", 0);
	rmdir(folder);
}

static void make_folder(void)
{
	must(mkdtemp(folder) != NULL);
	must((folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0);
	atexit(remove_folder);
	put("image", ".version", 8);
	put("data", "0123456789abcdef", 16);
}

static void run(struct kernels *k, uint32_t rows)
{
	struct gpu_plan p = { .rows = rows };
	struct error err = { .text = "" };
	int e = 0;
	for (unsigned i = 0; i < k->gpu.base.ins && !e; i++) {
		uint64_t bytes = 0;
		p.in[i].type = k->gpu.base.in[i].type;
		p.in[i].shape = k->gpu.base.in[i].shape;
		if (p.in[i].shape.n && p.in[i].shape.dims[0] < 0)
			p.in[i].shape.dims[0] = rows;
		e = shape_bytes(&p.in[i].shape, p.in[i].type, &bytes);
		p.in[i].bytes = bytes;
		e = e ? e : gpu_space_alloc(&k->gpu.space, NULL, bytes, &p.in[i].at, &err);
	}
	e = e ? e : plan(&k->gpu, &p, &err);
	e = e ? e : enqueue(&k->gpu, &p, &err);
	unplan(&k->gpu, &p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool made;
	const struct engine_config config = { .name = "fuzz", .max_batch_size = 8 };
	struct error err = { .text = "" };
	if (!made) {
		make_gpu();
		make_folder();
		made = true;
	}
	json_t *root = json_loadb((const char *)data, size, 0, NULL);
	if (!root)
		return 0;
	struct kernels *k = xcalloc(1, sizeof *k);
	engine_model_init(&k->gpu.base, &engine_kernels, &config);
	k->gpu.gpu = &gpu;
	k->gpu.ops = &ops;
	k->gpu.max_rows = config.max_batch_size;
	k->folder = dup(folder_fd);
	loaded = k;
	must(!gpu_space_init(&k->gpu.space, &gpu, NULL, 0, NULL));
	const int e = read_model(k, root, "kernels.json", &err);
	must(!e == !*err.text);
	if (!e) {
		run(k, 1);
		run(k, config.max_batch_size);
	}
	json_decref(root);
	unload(&k->gpu.base);
	return 0;
}
