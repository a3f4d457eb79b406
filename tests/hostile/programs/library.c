/*
 * Calls of cuBLAS, cuBLASLt and cuDNN: library MODE DIRECTORY, where the doubles of the libraries
 * are.  The doubles say what they were given and by whom; the trace must have a range a call.
 */
#include "cu.h"

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>

#include "../libs/mock_cublaslt.h"

typedef int create(void **ret_handle);
typedef int gemm_ex(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
	const void *a, int type_a, int lda, const void *b, int type_b, int ldb, const void *beta,
	void *c, int type_c, int ldc, int compute, int algo);
typedef int sgemm(void *handle, int ta, int tb, int m, int n, int k, const float *alpha,
	const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
typedef int sgemm_64(void *handle, int ta, int tb, int64_t m, int64_t n, int64_t k,
	const float *alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
	const float *beta, float *c, int64_t ldc);
typedef int gemm_strided(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
	const void *a, int type_a, int lda, long long stride_a, const void *b, int type_b, int ldb,
	long long stride_b, const void *beta, void *c, int type_c, int ldc, long long stride_c,
	int batch, int compute, int algo);
typedef int strsm(void *handle, int side, int uplo, int trans, int diag, int m, int n,
	const float *alpha, const float *a, int lda, float *b, int ldb);
typedef int matmul(void *handle, const struct mock_matmul *desc, const void *alpha, const void *a,
	const struct mock_layout *layout_a, const void *b, const struct mock_layout *layout_b,
	const void *beta, const void *c, const struct mock_layout *layout_c, void *d,
	const struct mock_layout *layout_d, const void *algo, void *room, size_t bytes,
	void *stream);
typedef int convolution(void *handle, const void *alpha, const int *input, const void *x,
	const int *filter, const void *w, const void *conv, int algo, void *room, size_t bytes,
	const void *beta, const int *output, void *y);
typedef int execute(void *handle, void *plan, void *pack);

static const char *directory;
static void *library, *handle;

static void *open_library(const char *name, int flags)
{
	char path[PATH_MAX];
	void *opened;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	opened = dlopen(path, RTLD_NOW | flags);
	cu_need(!opened, name);
	return opened;
}

static void *find(void *in, const char *name)
{
	void *found = dlsym(in, name);

	cu_need(!found, name);
	return found;
}

static void start(void)
{
	library = open_library("libcublas.so.13", RTLD_LOCAL);
	cu_need(((create *)find(library, "cublasCreate_v2"))(&handle), "cublasCreate_v2");
}

static int product(int m, int n, int k)
{
	return ((sgemm *)find(library, "cublasSgemm_v2"))(handle, 0, 1, m, n, k, (void *)0x1,
		(void *)0x2, m, (void *)0x3, n, (void *)0x4, (void *)0x5, m);
}

static void set_inside(void (*inside)(void))
{
	*(void (**)(void))find(library, "mock_inside") = inside;
}

static void set_quiet(void)
{
	*(int *)find(library, "mock_quiet") = 1;
}

static int solve(int m, int n)
{
	return ((strsm *)find(library, "cublasStrsm_v2"))(
		handle, 0, 1, 0, 1, m, n, (void *)0x1, (void *)0x2, 10, (void *)0x3, 11);
}

/* Every argument arrives, from 14 to 23 of them, and errno both ways. */
static void all_arguments(void)
{
	int code;

	start();
	errno = 5;
	code = product(2, 3, 4);
	printf("Sgemm: %d, errno %d\n", code, errno);
	errno = 6;
	code = ((sgemm_64 *)find(library, "cublasSgemm_v2_64"))(handle, 0, 1, 1ll << 40, 3, 4,
		(void *)0x1, (void *)0x2, 1ll << 41, (void *)0x3, 7, (void *)0x4, (void *)0x5, 8);
	printf("Sgemm_64: %d, errno %d\n", code, errno);
	code = ((gemm_ex *)find(library, "cublasGemmEx"))(handle, 1, 2, 5, 6, 7, (void *)0x1,
		(void *)0x2, 2, 8, (void *)0x3, 14, 9, (void *)0x4, (void *)0x5, 0, 10, 68, -1);
	printf("GemmEx: %d\n", code);
	code = ((gemm_strided *)find(library, "cublasGemmStridedBatchedEx"))(handle, 1, 2, 5, 6, 7,
		(void *)0x1, (void *)0x2, 2, 8, 1ll << 50, (void *)0x3, 2, 9, 1ll << 51,
		(void *)0x4, (void *)0x5, 2, 10, -(1ll << 52), INT_MAX, 77, 99);
	printf("GemmStridedBatchedEx: %d\n", code);
	printf("Strsm: %d\n", solve(8, 9));
	counts("range:cublasSgemm_v2", 1);
	counts("range:cublasSgemm_v2_64", 1);
	counts("range:cublasGemmEx", 1);
	counts("range:cublasGemmStridedBatchedEx", 1);
	counts("range:cublasStrsm_v2", 1);
}

static void failures(void)
{
	start();
	printf("negative: %d\n", product(-1, 2, 3));
	handle = NULL;
	printf("no handle: %d\n", product(1, 2, 3));
	printf("absent: %d\n", dlsym(library, "cublasHgemm") != NULL);
	printf("anywhere: %d\n", dlsym(RTLD_DEFAULT, "cublasSgemm_v2") != NULL);
	printf("next: %d\n", dlsym(RTLD_NEXT, "cublasLtMatmul") != NULL);
	counts("range:cublasSgemm_v2", 2);
}

struct user {
	void *handle;
	create *create;
	int (*product)(void *handle, int m, int n, int k);
};

static struct user user_of(const char *name, int flags)
{
	struct user u = { NULL, NULL, NULL };
	void *opened = open_library(name, flags);

	u.create = (create *)find(opened, "use_create");
	u.product = (int (*)(void *, int, int, int))find(opened, "use_product");
	cu_need(u.create(&u.handle), "cublasCreate_v2");
	return u;
}

/* The loader binds the calls of a library to a copy of its own. */
static void bound(int flags)
{
	struct user u = user_of("libuse_cublas_13.so", flags);

	for (int i = 0; i < 3; i++)
		printf("%d\n", u.product(u.handle, 10 + i, 20, 30));
	counts("range:cublasGemmEx", 3);
}

/* A handle is worth something to the copy alone that made it, by whatever way it is reached. */
static void copies(void)
{
	struct user one = user_of("libuse_cublas_13.so", RTLD_LOCAL), two;

	printf("one alone: %d\n", one.product(one.handle, 1, 1, 1));
	two = user_of("libuse_cublas_12.so", RTLD_LOCAL);
	start();
	for (int i = 0; i < 3; i++) {
		printf("one: %d\n", one.product(one.handle, 1, 2, i));
		printf("two: %d\n", two.product(two.handle, 3, 4, i));
		printf("looked up: %d\n", product(5, 6, i));
	}
	printf("exchanged: %d\n", one.product(two.handle, 7, 8, 9));
	counts("range:cublasGemmEx", 8);
}

static void reload(void)
{
	for (int i = 0; i < 3; i++) {
		start();
		printf("%d\n", product(1, 1, i));
		printf("closed: %d\n", dlclose(library));
	}
	counts("range:cublasSgemm_v2", 3);
}

static void descriptors(void)
{
	void *lt = open_library("libcublasLt.so.13", RTLD_LOCAL), *light = NULL;
	const struct mock_layout a = { 28, 4, 64, 32 }, b = { 29, 4, 64, 16 },
				 d = { 14, 4, 32, 16 };
	const struct mock_matmul desc = { 68, 1, 36 };
	matmul *call = (matmul *)find(lt, "cublasLtMatmul");

	cu_need(((create *)find(lt, "cublasLtCreate"))(&light), "cublasLtCreate");
	printf("%d\n",
		call(light, &desc, (void *)0x1, (void *)0x2, &a, (void *)0x3, &b, (void *)0x4,
			(void *)0x5, &d, (void *)0x6, &d, NULL, NULL, 77, (void *)0x7));
	printf("%d\n", call(light, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
			       NULL, NULL, 0, NULL));
	printf("%d\n", call(NULL, &desc, NULL, NULL, &a, NULL, NULL, NULL, NULL, NULL, NULL, &d,
			       NULL, NULL, 1, NULL));
	counts("range:cublasLtMatmul", 3);
}

static void parts(void)
{
	static const int x[] = { 2, 4, 1, 3, 8, 8 }, w[] = { 2, 4, 5, 3, 3, 3 },
			 y[] = { 2, 4, 1, 5, 6, 6 }, odd[] = { 0, 9 };
	void *dnn = open_library("libcudnn.so.9", RTLD_LOCAL), *context = NULL;
	convolution *call = (convolution *)find(dnn, "cudnnConvolutionForward");

	cu_need(((create *)find(dnn, "cudnnCreate"))(&context), "cudnnCreate");
	printf("%d\n", call(context, NULL, x, NULL, w, NULL, NULL, 1, NULL, 4096, NULL, y, NULL));
	printf("%d\n", call(context, NULL, x, NULL, NULL, NULL, NULL, 2, NULL, 0, NULL, y, NULL));
	printf("%d\n", call(context, NULL, odd, NULL, w, NULL, NULL, 3, NULL, 0, NULL, y, NULL));
	printf("%d\n",
		((execute *)find(dnn, "cudnnBackendExecute"))(context, (void *)1, (void *)2));
	counts("range:cudnnConvolutionForward", 3);
	counts("range:cudnnBackendExecute", 1);
}

/* cuBLAS passes a product on to cuBLASLt: a range in a range. */
static void nested(void)
{
	void *lt = open_library("libcublasLt.so.13", RTLD_GLOBAL);

	start();
	printf("%d %d\n", lt != NULL, product(1000, 2, 3));
	counts("range:cublasSgemm_v2", 1);
	counts("range:cublasLtMatmul", 1);
}

static void launch(void)
{
	cu_launch_once();
}

/* Kernels are asked for inside the calls, as the real library does. */
static void owned(void)
{
	cu_start();
	start();
	set_inside(launch);
	for (int i = 0; i < 5; i++)
		product(64, 32, 16);
	solve(8, 9);
	set_inside(NULL);
	printf("%d failed\n", cu_launch(3));
	cuCtxSynchronize();
	counts("range:cublasSgemm_v2", 5);
	counts("range:cublasStrsm_v2", 1);
	counts("cuLaunchKernel", 9);
}

static void forked(void)
{
	int status = -1;
	pid_t child;

	start();
	product(1, 1, 1);
	fflush(stdout);
	child = fork();
	if (!child) {
		product(2, 2, 2);
		product(1, 1, 1);
		fflush(stdout);
		_exit(3);
	}
	waitpid(child, &status, 0);
	product(3, 3, 3);
	printf("child: %d\n", WEXITSTATUS(status));
	counts("range:cublasSgemm_v2", 4);
}

static void handler(int number)
{
	static int depth;

	if (++depth < 5)
		printf("%d\n", depth % 2 ? solve(number, depth) : product(number, depth, 0));
	depth--;
}

static void interrupt(void)
{
	raise(SIGUSR1);
}

/* A handler interrupts a call and makes one itself, which is interrupted. */
static void signals(void)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_NODEFER };

	start();
	sigaction(SIGUSR1, &act, NULL);
	set_inside(interrupt);
	printf("%d\n", product(1, 1, 1));
	counts("range:cublasSgemm_v2", 3);
	counts("range:cublasStrsm_v2", 2);
}

static jmp_buf out;

static void leave(void)
{
	set_inside(NULL);
	longjmp(out, 1);
}

static void jump(void)
{
	start();
	for (volatile int i = 0; i < 100; i++) {
		if (setjmp(out))
			continue;
		printf("%d\n", solve(i, i));
		set_inside(leave);
		product(1, 1, i);
	}
	printf("%d\n", solve(2, 2));
	counts("range:cublasSgemm_v2", 100);
	counts("range:cublasStrsm_v2", 101);
}

#define THREADS 8
#define EACH    2000

static void *work(void *number)
{
	const int id = (int)(intptr_t)number;
	int failed = 0;

	for (int i = 0; i < EACH; i++)
		failed += product(id, i % 7, i % 5) != 0;
	return (void *)(intptr_t)failed;
}

static void threads(void)
{
	pthread_t ids[THREADS];
	int failed = 0;
	void *one;

	start();
	set_quiet();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(ids[i], &one);
		failed += (int)(intptr_t)one;
	}
	printf("%d failed\n", failed);
	counts("range:cublasSgemm_v2", THREADS * EACH);
}

/* More shapes than the trace remembers. */
static void shapes(void)
{
	int failed = 0;

	start();
	set_quiet();
	for (int i = 0; i < 100000; i++)
		failed += product(i, 1, 1) != 0;
	printf("%d failed\n", failed);
	counts("range:cublasSgemm_v2", 100000);
}

static void globally(void)
{
	bound(RTLD_GLOBAL);
}

static void locally(void)
{
	bound(RTLD_LOCAL);
}

static void deeply(void)
{
	bound(RTLD_LOCAL | RTLD_DEEPBIND);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = { { "arguments", all_arguments }, { "failures", failures },
		{ "global", globally }, { "local", locally }, { "deep", deeply },
		{ "copies", copies }, { "reload", reload }, { "descriptors", descriptors },
		{ "parts", parts }, { "nested", nested }, { "owned", owned }, { "fork", forked },
		{ "signals", signals }, { "jump", jump }, { "threads", threads },
		{ "shapes", shapes } };

	if (argc < 3)
		return 99;
	directory = argv[2];
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
		if (!strcmp(modes[i].name, argv[1])) {
			modes[i].run();
			return 0;
		}
	return 99;
}
