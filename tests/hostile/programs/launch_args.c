/* Launches whose arguments are hard to read: none, in buffers, at the end of readable memory,
 * huge, of a function that goes and comes back as another, of launches that fail.  With `sim` the
 * functions are PTX, for the simulated driver; else their images are lists of sizes, for the mock
 * that knows parameters. */
#include "cu.h"

#include <sys/mman.h>
#include <sys/wait.h>

static int (*unload)(void *);
static void *function;
static bool simulated;
static int launched;
static char *edge; /* where readable memory ends */

static const char *image_of(const char *sizes)
{
	static char ptx[1024];
	size_t n = (size_t)snprintf(ptx, sizeof ptx,
		".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry f(");

	if (!simulated)
		return sizes;
	for (int i = 0; *sizes; i++) {
		const size_t bytes = strtoul(sizes, (char **)&sizes, 10);
		n += (size_t)snprintf(ptx + n, sizeof ptx - n, "%s.param .align 8 .b8 p%d[%zu]",
			i ? "," : "", i, bytes);
		sizes += *sizes == ',';
	}
	snprintf(ptx + n, sizeof ptx - n, ")\n{\n\tret;\n}\n");
	return ptx;
}

static void *load(const char *sizes)
{
	void *module;

	cu_need(cuModuleLoadData(&module, image_of(sizes)), "cuModuleLoadData");
	cu_need(cuModuleGetFunction(&function, module, "f"), "cuModuleGetFunction");
	return module;
}

static void launch(const char *what, void **params, void **extra)
{
	const int result = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, extra);

	printf("%s: %d\n", what, result);
	launched++;
}

/* `bytes` that end where readable memory ends. */
static void *at_edge(size_t bytes, int fill)
{
	return memset(edge - bytes, fill, bytes);
}

static void without_any(void)
{
	void *nothing[] = { NULL }, *end[] = { NULL };

	load("");
	launch("no arguments", NULL, NULL);
	launch("an empty list", nothing, NULL);
	launch("an end alone", NULL, end);
}

static void in_buffers(void)
{
	size_t bytes = 20;
	char *buffer = at_edge(bytes, 3);
	void *extra[] = { (void *)1, buffer, (void *)2, &bytes, NULL };
	void *turned[] = { (void *)2, &bytes, (void *)1, buffer, NULL };

	load("8,8,4");
	launch("a buffer", NULL, extra);
	launch("its size first", NULL, turned);
}

static void scalars(void)
{
	uint64_t address = 0x7f0000000000;
	uint32_t n = 1;
	void *params[] = { &address, at_edge(4, 0), &n };

	load("8,4,4");
	for (; n <= 3; n++) {
		launch("a scalar", params, NULL);
		address += 4096;
		launch("the same, another buffer", params, NULL);
	}
}

static void huge(void)
{
	void *params[] = { at_edge(4088, 1), at_edge(8, 1) };
	void *more[] = { at_edge(32756, 1), at_edge(8, 1) };

	load("4088,8");
	launch("4 KB", params, NULL);
	if (simulated)
		return;
	load("32756,8");
	launch("32 KB", more, NULL);
}

/* The same handle with fewer bytes behind it: whoever reads as many as before reads too far. */
static void comes_back(void)
{
	void *wide[] = { at_edge(64, 2) }, *narrow[] = { at_edge(2, 2) };

	for (int i = 0; i < 3; i++) {
		void *module = load("64");
		wide[0] = at_edge(64, i);
		launch("wide", wide, NULL);
		cu_need(unload(module), "cuModuleUnload");
		narrow[0] = at_edge(2, i);
		module = load("2");
		launch("narrow", narrow, NULL);
		cu_need(unload(module), "cuModuleUnload");
	}
	load("64"); /* and without being unloaded */
	wide[0] = at_edge(64, 9);
	launch("wide", wide, NULL);
	narrow[0] = at_edge(2, 9);
	load("2");
	launch("narrow", narrow, NULL);
}

/* The driver refuses before it looks at arguments that nobody could read. */
static void failing(void)
{
	void *beyond[] = { edge };

	load("8");
	printf("no blocks: %d\n",
		cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, NULL, beyond, NULL));
	printf("no function: %d\n",
		cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, (void **)edge, NULL) != 0);
	launched += 2;
}

static void in_a_child(void)
{
	uint64_t n = 5;
	void *params[] = { &n };
	int status;

	load("8");
	launch("before a fork", params, NULL);
	fflush(stdout);
	const pid_t pid = fork();
	if (!pid) {
		launch("in the child", params, NULL);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	launched++;
	launch("after it", params, NULL);
}

int main(int argc, char **argv)
{
	const size_t bytes = 16 * 4096;
	char *map = mmap(
		NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	simulated = argc > 1 && !strcmp(argv[1], "sim");
	edge = map + bytes;
	mprotect(edge, 4096, PROT_NONE);
	cu_start();
	*(void **)&unload = dlsym(cu_library, "cuModuleUnload");
	cu_need(!unload, "cuModuleUnload");
	comes_back(); /* first: what is learnt of the handle here must not stay */
	without_any();
	in_buffers();
	scalars();
	huge();
	failing();
	if (!simulated)
		in_a_child();
	counts("cuLaunchKernel", launched);
	return 0;
}
