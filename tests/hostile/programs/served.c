/*
 * Uses of device memory that nobody would make on purpose, for weir run --pool: what a case prints
 * is the same whoever serves the memory.
 */
#include "cu.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <ucontext.h>

#define MIB ((size_t)1 << 20)

#define MORE_FUNCTIONS(X)                                                                          \
	X(cuCtxCreate_v2, (void **, unsigned, int))                                                \
	X(cuCtxDestroy_v2, (void *))                                                               \
	X(cuCtxEnablePeerAccess, (void *, unsigned))                                               \
	X(cuDevicePrimaryCtxReset_v2, (int))                                                       \
	X(cuStreamCreate, (void **, unsigned))                                                     \
	X(cuStreamDestroy_v2, (void *))                                                            \
	X(cuStreamSynchronize, (void *))                                                           \
	X(cuStreamBeginCapture_v2, (void *, int))                                                  \
	X(cuStreamEndCapture, (void *, void **))                                                   \
	X(cuLaunchHostFunc, (void *, void (*)(void *), void *))                                    \
	X(cuMemAllocAsync, (uint64_t *, size_t, void *))                                           \
	X(cuMemFreeAsync, (uint64_t, void *))                                                      \
	X(cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *))                              \
	X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                             \
	X(cuMemGetAccess, (unsigned long long *, void *, uint64_t))                                \
	X(cuMemGetAddressRange_v2, (uint64_t *, size_t *, uint64_t))                               \
	X(cuPointerGetAttribute, (void *, int, uint64_t))                                          \
	X(cuPointerGetAttributes, (unsigned, int *, void **, uint64_t))                            \
	X(cuDeviceGetDefaultMemPool, (void **, int))                                               \
	X(cuMemPoolSetAccess, (void *, const void *, size_t))                                      \
	X(cuMemPoolTrimTo, (void *, size_t))
MORE_FUNCTIONS(CU_DECLARE)

static bool is_pool; /* it is not the driver that serves */

static void say(const char *what, int result)
{
	printf("%s: %d\n", what, result);
}
#define SAY(call)  say(#call, call)
#define NEED(call) cu_need(call, #call)

static size_t in_use(void)
{
	size_t left = 0, all = 0;
	NEED(cuMemGetInfo_v2(&left, &all));
	return all - left;
}

static bool reaches(uint64_t block, int device)
{
	unsigned long long flags = 0;
	const int location[2] = { 1, device };
	return !cuMemGetAccess(&flags, (void *)location, block) && flags == 3;
}

/* Whether memory comes from where it should. */
static void check_served(void)
{
	uint64_t p;
	NEED(cuMemAlloc_v2(&p, 4096));
	say("served", is_pool == reaches(p, 0));
	NEED(cuMemFree_v2(p));
}

static void trim(void)
{
	void *pool;
	NEED(cuDeviceGetDefaultMemPool(&pool, 0));
	NEED(cuMemPoolTrimTo(pool, 0));
}

static atomic_int gate;

static void wait_for_gate(void *unused)
{
	(void)unused;
	while (!atomic_load(&gate))
		usleep(100);
}

static const char *library_begin, *library_end; /* code of libweir.so */
static atomic_bool storm_over;
static atomic_int hits, wrong;
static pthread_t victim;
static bool jumps;
static sigjmp_buf back;

static void find_library(void)
{
	char line[512], mode[8];
	char *from, *to;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, maps))
		if (strstr(line, "libweir.so") &&
			sscanf(line, "%p-%p %7s", (void **)&from, (void **)&to, mode) == 3 &&
			mode[2] == 'x') {
			library_begin = from;
			library_end = to;
		}
	fclose(maps);
}

/* Only in the middle of the library: the driver promises nothing here. */
static void handler(int signal, siginfo_t *info, void *context)
{
	uint64_t p;
#ifdef __x86_64__
	const char *at = (char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#else
	const char *at = (char *)((ucontext_t *)context)->uc_mcontext.pc;
#endif
	(void)signal;
	(void)info;
	if (at < library_begin || at >= library_end)
		return;
	hits++;
	if (jumps)
		siglongjmp(back, 1);
	if (cuMemAllocAsync(&p, 4096, NULL) || cuMemFreeAsync(p, NULL))
		wrong++;
}

static void *storm(void *unused)
{
	while (!atomic_load(&storm_over)) {
		pthread_kill(victim, SIGUSR1);
		for (volatile int i = 0; i < 2000; i++)
			;
	}
	return unused;
}

static void storm_over_blocks(bool leave)
{
	pthread_t t;
	uint64_t p;
	volatile int n = 0;
	struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	check_served();
	const size_t before = in_use();
	find_library();
	jumps = leave;
	victim = pthread_self();
	sigsetjmp(back, 1);
	sigaction(SIGUSR1, &act, NULL);
	if (!n)
		pthread_create(&t, NULL, storm, NULL);
	while (n < 20000) {
		n = n + 1;
		if (cuMemAllocAsync(&p, 100000, NULL) || cuMemFreeAsync(p, NULL))
			wrong++;
	}
	signal(SIGUSR1, SIG_IGN);
	atomic_store(&storm_over, true);
	pthread_join(t, NULL);
	say("wrong", wrong);
	if (!leave) /* the driver may have to, after a jump out of the middle */
		check_served();
	NEED(cuCtxSynchronize());
	trim();
	if (!leave)
		say("all is free again", in_use() == before);
}

static void handlers(void)
{
	storm_over_blocks(false);
}

static void jump(void)
{
	storm_over_blocks(true);
}

enum { MANY = 100 };

static void many_streams(void)
{
	void *s[MANY];
	uint64_t p[MANY];
	unsigned char c;
	int lost = 0;
	check_served();
	const size_t before = in_use();
	for (int i = 0; i < MANY; i++) {
		NEED(cuStreamCreate(&s[i], 1));
		NEED(cuMemAllocAsync(&p[i], 100000, s[i]));
		NEED(cuMemsetD8Async(p[i], (unsigned char)i, 100000, s[i]));
	}
	for (int i = 0; i < MANY; i++) { /* each in another's order */
		NEED(cuStreamSynchronize(s[i]));
		NEED(cuMemcpyDtoH_v2(&c, p[i] + 99999, 1));
		lost += c != (unsigned char)i;
		NEED(cuMemFreeAsync(p[i], s[(i + 1) % MANY]));
		NEED(cuStreamDestroy_v2(s[(i + 1) % MANY]));
		NEED(cuStreamCreate(&s[(i + 1) % MANY], 1));
	}
	say("lost", lost);
	NEED(cuCtxSynchronize());
	trim();
	say("all is free again", in_use() == before);
}

static void context_ends(void)
{
	void *other, *was;
	uint64_t p, q;
	NEED(cuCtxCreate_v2(&other, 0, 0));
	const size_t before = in_use();
	NEED(cuMemAlloc_v2(&p, 64 * MIB));
	NEED(cuCtxDestroy_v2(other));
	NEED(cuCtxGetCurrent(&was));
	NEED(cuCtxSetCurrent(cu_context));
	say("gone with its context", in_use() <= before);
	say("no block any more", cuMemFree_v2(p) != 0);
	SAY(cuMemAlloc_v2(&q, 64 * MIB));
	SAY(cuMemFree_v2(q));
	trim();
	say("all is free again", in_use() <= before);
	check_served();
}

/* The default streams of two contexts are two streams. */
static void default_streams(void)
{
	void *other;
	uint64_t p, q;
	unsigned char c = 0;
	NEED(cuMemAllocAsync(&p, MIB, NULL));
	NEED(cuLaunchHostFunc(NULL, wait_for_gate, NULL));
	NEED(cuMemsetD8Async(p, 1, MIB, NULL));
	NEED(cuMemFreeAsync(p, NULL));
	NEED(cuCtxCreate_v2(&other, 0, 0));
	NEED(cuMemAllocAsync(&q, MIB, NULL));
	NEED(cuMemsetD8Async(q, 2, MIB, NULL));
	if (q != p)
		NEED(cuCtxSynchronize());
	atomic_store(&gate, 1);
	NEED(cuCtxSynchronize());
	NEED(cuCtxSetCurrent(cu_context));
	NEED(cuCtxSynchronize());
	NEED(cuCtxSetCurrent(other));
	NEED(cuMemcpyDtoH_v2(&c, q, 1));
	say("what was put there", c);
	SAY(cuMemFreeAsync(q, NULL));
}

static void resets(void)
{
	uint64_t p;
	for (int i = 0; i < 600; i++) {
		NEED(cuMemAlloc_v2(&p, 4096));
		NEED(cuDevicePrimaryCtxReset_v2(0));
		NEED(cuDevicePrimaryCtxRetain(&cu_context, 0));
		NEED(cuCtxSetCurrent(cu_context));
	}
	check_served();
}

/* Asked for before there is any memory, as programs do. */
static void peers(void)
{
	void *second, *pool;
	uint64_t p;
	const int access[3] = { 1, 0, 3 };
	NEED(cuDevicePrimaryCtxRetain(&second, 1));
	SAY(cuCtxEnablePeerAccess(second, 0));
	NEED(cuDeviceGetDefaultMemPool(&pool, 1));
	SAY(cuMemPoolSetAccess(pool, access, 1));
	NEED(cuCtxSetCurrent(second));
	NEED(cuMemAlloc_v2(&p, MIB));
	say("the other device reaches it", is_pool == reaches(p, 0));
	say("and its own", is_pool == reaches(p, 1));
	SAY(cuMemFree_v2(p));
}

static atomic_int waiter_result = -1;

static void *waiter(void *stream)
{
	uint64_t p;
	NEED(cuCtxSetCurrent(cu_context));
	atomic_store(&waiter_result, cuMemAllocAsync(&p, 410 * MIB, stream));
	return NULL;
}

/* One waits for memory that work in flight still has; what others free meanwhile is free. */
static void waits(void)
{
	pthread_t t;
	void *s, *other;
	uint64_t p, q, between;
	NEED(cuStreamCreate(&s, 1));
	NEED(cuStreamCreate(&other, 1));
	NEED(cuMemAllocAsync(&q, 64 * MIB, other));
	NEED(cuMemAllocAsync(&p, 400 * MIB, s));
	NEED(cuMemAllocAsync(&between, MIB, s));
	NEED(cuLaunchHostFunc(s, wait_for_gate, NULL));
	NEED(cuMemFreeAsync(p, s));
	pthread_create(&t, NULL, waiter, s);
	usleep(100000);
	SAY(cuMemFreeAsync(q, other));
	atomic_store(&gate, 1);
	pthread_join(t, NULL);
	say("the other has its memory", atomic_load(&waiter_result));
	NEED(cuCtxSynchronize());
	trim();
	say("freed", in_use() < 440 * MIB);
}

/* Freed in the default stream of a thread, while another stream waits for the host: memory that the
 * first has come to serves again. */
static void own_stream(void)
{
	enum { BLOCKS = 80 };
	void *s, *const own = (void *)2;
	uint64_t p[BLOCKS];
	size_t most = 0;
	NEED(cuStreamCreate(&s, 1));
	check_served();
	trim();
	const size_t before = in_use();
	NEED(cuLaunchHostFunc(s, wait_for_gate, NULL));
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < BLOCKS; i++)
			NEED(cuMemAlloc_v2(&p[i], MIB));
		most = in_use() > most ? in_use() : most;
		for (int i = 0; i < BLOCKS; i++) {
			NEED(cuMemsetD8Async(p[i], 1, MIB, own));
			NEED(cuMemFreeAsync(p[i], own));
			if (i % 20 == 19)
				NEED(cuStreamSynchronize(own));
		}
	}
	say("it serves again", most <= before + 3 * BLOCKS * MIB);
	atomic_store(&gate, 1);
	NEED(cuCtxSynchronize());
	trim();
	say("all is free again", in_use() == before);
}

/* It is the host that the device waits for: an allocation that waits for the device would be for
 * ever. */
static void host_first(void)
{
	void *s;
	uint64_t p, q;
	NEED(cuStreamCreate(&s, 1));
	NEED(cuMemAllocAsync(&p, 400 * MIB, s));
	NEED(cuLaunchHostFunc(s, wait_for_gate, NULL));
	NEED(cuMemFreeAsync(p, s));
	SAY(cuMemAlloc_v2(&q, 400 * MIB));
	trim();
	NEED(in_use() == 0);
	atomic_store(&gate, 1);
	SAY(cuMemFree_v2(q));
}

static pthread_barrier_t turn;

static void *capturer(void *stream)
{
	void *graph = NULL;
	NEED(cuCtxSetCurrent(cu_context));
	say("begins", cuStreamBeginCapture_v2(stream, 0));
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	say("ends", cuStreamEndCapture(stream, &graph));
	return NULL;
}

static void captures(void)
{
	pthread_t t;
	void *s, *a, *b;
	uint64_t p, q, left[8];
	NEED(cuStreamCreate(&s, 1));
	NEED(cuStreamCreate(&a, 1));
	NEED(cuStreamCreate(&b, 1));
	NEED(cuMemAllocAsync(&p, 20 * MIB, a));
	pthread_barrier_init(&turn, NULL, 2);
	pthread_create(&t, NULL, capturer, s);
	pthread_barrier_wait(&turn);
	SAY(cuMemFreeAsync(p, a));
	for (int i = 0; i < 8; i++)
		SAY(cuMemAllocAsync(&left[i], 30 * MIB, i % 2 ? a : b));
	SAY(cuMemAllocAsync(&q, 20 * MIB, b));
	NEED(in_use() == 0);
	trim();
	for (int i = 0; i < 8; i++)
		SAY(cuMemFreeAsync(left[i], i % 2 ? b : a));
	trim();
	SAY(cuMemFreeAsync(q, a));
	pthread_barrier_wait(&turn);
	pthread_join(t, NULL);
}

static void *free_one(void *block)
{
	NEED(cuCtxSetCurrent(cu_context));
	SAY(cuMemFree_v2(*(uint64_t *)block));
	return NULL;
}

/* A capture of a mode that allows frees, to its own thread or to others, outlives them. */
static void captures_allow(void)
{
	static const char *const modes[] = { "", "of its thread", "relaxed" };
	pthread_t t;
	void *s, *graph;
	uint64_t p, q, r;
	NEED(cuStreamCreate(&s, 1));
	check_served();
	trim();
	const size_t before = in_use();
	for (int mode = 1; mode <= 2; mode++) {
		NEED(cuMemAlloc_v2(&p, 20 * MIB));
		NEED(cuMemAlloc_v2(&q, 20 * MIB));
		printf("a capture %s\n", modes[mode]);
		NEED(cuStreamBeginCapture_v2(s, mode));
		pthread_create(&t, NULL, free_one, &q);
		pthread_join(t, NULL);
		say("freed twice", cuMemFree_v2(q));
		SAY(cuMemsetD8Async(p, 1, MIB, s));
		const int freed = cuMemFree_v2(p);
		say("by its own thread", freed);
		say("ends", cuStreamEndCapture(s, &graph));
		if (freed)
			SAY(cuMemFree_v2(p));
		SAY(cuMemAlloc_v2(&r, 20 * MIB));
		SAY(cuMemFree_v2(r));
		trim();
		say("all is free again", in_use() == before);
	}
}

/* Captures forbid the same, whoever serves. */
static void captures_free(void)
{
	pthread_t t;
	void *s;
	uint64_t p, q;
	NEED(cuStreamCreate(&s, 1));
	NEED(cuMemAlloc_v2(&p, MIB));
	pthread_barrier_init(&turn, NULL, 2);
	pthread_create(&t, NULL, capturer, s);
	pthread_barrier_wait(&turn);
	const int freed = cuMemFree_v2(p);
	say("freed", freed);
	SAY(cuMemAlloc_v2(&q, MIB));
	pthread_barrier_wait(&turn);
	pthread_join(t, NULL);
	if (freed)
		SAY(cuMemFree_v2(p));
}

enum { MEMORY_TYPE = 2, RANGE_START = 11, RANGE_BYTES = 12 };

static void ask_about(const char *when, uint64_t block)
{
	uint64_t base = 7, start = 7;
	size_t bytes = 7, size = 7;
	unsigned type = 7, types = 7;
	void *data[3] = { &types, &start, &size };
	int names[3] = { MEMORY_TYPE, RANGE_START, RANGE_BYTES };
	puts(when);
	SAY(cuMemGetAddressRange_v2(&base, &bytes, block + 700));
	SAY(cuPointerGetAttribute(&type, MEMORY_TYPE, block + 700));
	SAY(cuPointerGetAttributes(3, names, data, block + 700));
	say("the right range", base == block && bytes == MIB && start == block && size == MIB);
	printf("%u %u\n", type, types);
}

static void questions(void)
{
	uint64_t p, q;
	check_served();
	NEED(cuMemAlloc_v2(&p, MIB));
	NEED(cuMemAlloc_v2(&q, MIB));
	ask_about("a block", p);
	NEED(cuMemFree_v2(p));
	ask_about("freed", p);
	ask_about("its neighbour", q);
	NEED(cuMemFreeAsync(q, NULL));
	NEED(cuStreamSynchronize(NULL));
	ask_about("freed in a stream", q);
	SAY(cuMemFree_v2(q));
}

static void nvshmem(void)
{
	uint64_t p, q;
	NEED(cuMemAlloc_v2(&p, MIB));
	NEED(cuMemAllocAsync(&q, MIB, NULL));
	say("memory that others could open is the driver's", !reaches(p, 0));
	say("the other is served", is_pool == reaches(q, 0));
	SAY(cuMemFree_v2(p));
	SAY(cuMemFree_v2(q));
}

/* Calls of the driver so far: of one function, or of all but the one that says which context is
 * current. */
static long driver_calls(const char *of)
{
	char name[96];
	long n, sum = 0;
	FILE *log = fopen("calls", "r");
	while (log && fscanf(log, "%95s %ld", name, &n) == 2)
		if (of ? !strcmp(name, of) : strcmp(name, "cuCtxGetCurrent") != 0)
			sum += n;
	if (log)
		fclose(log);
	return sum;
}

/* A step's allocations and frees, the same each time, over two streams, in an order of their own.
 */
static void one_step(void *s, void *other)
{
	enum { BLOCKS = 300 };
	uint64_t p[BLOCKS] = { 0 };
	unsigned draw = 1;
	for (int i = 0; i < 4 * BLOCKS; i++) {
		draw = draw * 1664525 + 1013904223;
		const unsigned at = (draw >> 8) % BLOCKS;
		void *const stream = at % 16 ? s : other;
		if (p[at]) {
			NEED(cuMemFreeAsync(p[at], stream));
			p[at] = 0;
		} else {
			const size_t bytes = 512 + (draw >> 16) * (at % 7 ? 16 : 128);
			NEED(cuMemAllocAsync(&p[at], bytes, stream));
		}
	}
	for (int i = 0; i < BLOCKS; i++)
		if (p[i])
			NEED(cuMemFreeAsync(p[i], i % 16 ? s : other));
}

static void steady(void)
{
	void *other;
	NEED(cuStreamCreate(&other, 1));
	check_served();
	for (int i = 0; i < 16; i++) /* memory moves to where it is needed */
		one_step(NULL, other);
	const long before = driver_calls(NULL);
	for (int i = 0; i < 20; i++)
		one_step(NULL, other);
	const long calls = driver_calls(NULL) - before;
	say("calls of the driver are seen", before > 0);
	say("a step makes none", is_pool ? !calls : calls > 0);
	uint64_t p;
	const long reached = driver_calls("cuMemSetAccess");
	NEED(cuMemAllocAsync(&p, 256 * MIB, NULL));
	say("the pool grows at one go", driver_calls("cuMemSetAccess") - reached == is_pool);
}

enum { THREADS = 8, EACH = 2000 };
static _Atomic uint64_t exchanged[THREADS];

/* One thread gives back what another has taken, in another order; some are cancelled meanwhile. */
static void *trade(void *number)
{
	void *s;
	uint64_t p;
	const size_t own = (size_t)number;
	NEED(cuCtxSetCurrent(cu_context));
	NEED(cuStreamCreate(&s, 1));
	for (size_t i = 0; i < EACH; i++) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		const int out = cuMemAllocAsync(&p, 1000 + 7919 * i % 3000000, i % 3 ? s : NULL);
		wrong += out && out != 2; /* there may be too little for all */
		p = out ? 0 : p;
		p = atomic_exchange_explicit(
			&exchanged[(own + i) % THREADS], p, memory_order_seq_cst);
		wrong += p && (i % 64 ? cuMemFreeAsync(p, s) : cuMemFree_v2(p));
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
		pthread_testcancel();
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	check_served();
	const size_t before = in_use();
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, trade, (void *)i);
	pthread_cancel(t[0]);
	pthread_cancel(t[1]);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (size_t i = 0; i < THREADS; i++)
		wrong += exchanged[i] && cuMemFree_v2(exchanged[i]);
	say("wrong", wrong);
	NEED(cuCtxSynchronize());
	trim();
	say("all is free again", in_use() == before);
	check_served();
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "handlers", handlers },
	{ "jump", jump },
	{ "many_streams", many_streams },
	{ "context_ends", context_ends },
	{ "default_streams", default_streams },
	{ "resets", resets },
	{ "peers", peers },
	{ "waits", waits },
	{ "host_first", host_first },
	{ "captures", captures },
	{ "captures_free", captures_free },
	{ "captures_allow", captures_allow },
	{ "own_stream", own_stream },
	{ "questions", questions },
	{ "nvshmem", nvshmem },
	{ "steady", steady },
	{ "threads", threads },
};

int main(int argc, char **argv)
{
	const char *words = getenv("WEIR");
	is_pool = words && strstr(words, ",pool");
	for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++) {
		if (strcmp(argv[1], cases[i].name) != 0)
			continue;
		cu_start();
#define MORE_RESOLVE(name, parameters)                                                             \
	*(void **)&name = dlsym(cu_library, #name);                                                \
	cu_need(!name, #name);
		MORE_FUNCTIONS(MORE_RESOLVE)
		cases[i].run();
		return 0;
	}
	return 97;
}
