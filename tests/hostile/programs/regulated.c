/*
 * Programs that are hard on the scheduler by the work that they make: `regulated CASE`.  Nothing is
 * judged by how long it took: what would hang is ended by case_regulated.sh.
 */
#include "regulated.h"

#include <stdatomic.h>

enum { PATIENT = 100 }; /* launches */

/* Work that goes on only when all launches were made: all wait for it in vain. */
static void depends(void)
{
	void *s = stream_new();
	other_comes(false);
	printf("launched %d\n", launch_on(s, 1));
	cu_need(cuStreamSynchronize(s), "cuStreamSynchronize");
	if (shared)
		own()->grant.budget_ns = 1;
	cu_need(cuLaunchHostFunc(s, hold, NULL), "cuLaunchHostFunc");
	for (int i = 0; i < PATIENT; i++)
		cu_need(launch_on(s, 1 + (unsigned)i % 3), "cuLaunchKernel");
	atomic_store(&released, 1);
	printf("synchronised %d\n", cuStreamSynchronize(s));
	if (shared)
		CHECK(own()->counts.expired <= 8);
}

/* All work at once, with nobody to wait for: of kernels, graphs and copies little is in flight,
 * from the first on, so that a latency program that comes is served. */
enum { QUEUED = 40, FEW = 8 };

static int in_flight(void *const event[QUEUED], int n)
{
	int most = 0;
	for (int i = 0; i < n; i++)
		most += cuEventQuery(event[i]) != 0;
	return most;
}

static void *queued_graph;
static uint64_t queued_memory;

static void send_one(int kind, void *stream, int i)
{
	if (kind == 0)
		cu_need(launch_on(stream, 1 + (unsigned)i % 3), "cuLaunchKernel");
	else if (kind == 1)
		cu_need(cuGraphLaunch(queued_graph, stream), "cuGraphLaunch");
	else
		cu_need(cuMemcpyDtoDAsync_v2(queued_memory, queued_memory + 4096, 4096, stream),
			"cuMemcpyDtoDAsync");
}

static void make_queued(void *stream)
{
	void *graph;
	cu_need(cuMemAlloc_v2(&queued_memory, 8192), "cuMemAlloc");
	cu_need(cuStreamBeginCapture_v2(stream, 0), "cuStreamBeginCapture");
	cu_need(launch_on(stream, 4), "cuLaunchKernel");
	cu_need(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
	cu_need(cuGraphInstantiateWithFlags(&queued_graph, graph, 0), "cuGraphInstantiate");
}

static void backlog(void)
{
	void *s = stream_new(), *event[QUEUED];
	make_queued(s);
	for (int i = 0; i < QUEUED; i++)
		cu_need(cuEventCreate(&event[i], 2), "cuEventCreate");
	for (int kind = 0; kind < 3; kind++) {
		int most = 0;
		for (int i = 0; i < QUEUED; i++) {
			send_one(kind, s, i);
			cu_need(cuEventRecord(event[i], s), "cuEventRecord");
			const int now = in_flight(event, i + 1);
			most = now > most ? now : most;
		}
		CHECK(most > 0);
		if (shared)
			CHECK(most <= FEW);
		printf("synchronised %d\n", cuStreamSynchronize(s));
	}
	if (shared)
		CHECK(own()->counts.expired == 0);
}

/* How often the driver has been asked to record an event. */
static long records(void)
{
	char path[256], line[128];
	long sum = 0;
	const char *at = strstr(getenv("WEIR_SIM"), "log=") + strlen("log=");
	snprintf(path, sizeof path, "%.*s", (int)strcspn(at, ","), at);
	FILE *f = fopen(path, "r");
	cu_need(!f, path);
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "cuEventRecord", strlen("cuEventRecord")))
			sum += atol(strchr(line, ' '));
	fclose(f);
	return sum;
}

/* Each event costs the device time.  A budget of 8 ms has two recorded for a millisecond of
 * predicted work: of launches of 5 us to 2 ms, on one stream or several.  A shape that comes late
 * is measured first, and a program that never waits learns nothing until 64 events are under way.
 */
enum { WAVE = 132 * 32, SHAPES = 12, LEARNING = 160 };

static void send_marked(
	void *const s[3], unsigned streams, unsigned shapes, unsigned launches, bool has_new)
{
	static const unsigned waves[SHAPES] = { 0, 1, 2, 4, 8, 16, 32, 48, 64, 128, 192, 333 };
	static unsigned lot = 1;
	for (unsigned i = 0; i < launches; i++) {
		lot = lot * 1103515245 + 12345;
		const unsigned waves_of = waves[(lot >> 16) % shapes];
		cu_need(launch_on(s[(lot >> 8) % streams],
				1 + waves_of * WAVE + (has_new && i % 8 == 0)),
			"cuLaunchKernel");
	}
}

static void marks(void)
{
	static const struct {
		unsigned streams, shapes, launches;
		bool has_new;
	} t[] = { { 1, 1, 6000, false }, { 1, 4, 2000, false }, { 1, SHAPES, 200, false },
		{ 3, 1, 6000, false }, { 3, 4, 2000, false }, { 3, SHAPES, 200, false },
		{ 1, 1, 6000, true } };
	void *const s[] = { stream_new(), stream_new(), stream_new() };
	launch_on(s[0], 1);
	other_comes(false);
	if (shared) /* each waits for the one before, which is measured */
		own()->grant.budget_ns = 1;
	send_marked(s, 1, SHAPES, 30 * SHAPES, false);
	if (shared)
		own()->grant.budget_ns = 8000000;
	for (unsigned k = 0; k < sizeof t / sizeof *t; k++) {
		const long before = records();
		const uint64_t work_before = own()->work.submitted_ns;
		send_marked(s, t[k].streams, t[k].shapes, t[k].launches, t[k].has_new);
		const double events = (double)(records() - before),
			     ms = (double)(own()->work.submitted_ns - work_before) / 1e6;
		fprintf(stderr, "%.0f events for %.1f ms\n", events, ms);
		if (shared)
			CHECK(events < 2 * ms + (t[k].has_new ? LEARNING : 2));
	}
	printf("synchronised %d\n", cuCtxSynchronize());
}

/* The arbiter died when it was another program's turn. */
static void orphan(void)
{
	launch_on(NULL, 1);
	other_comes(false);
	if (shared) {
		shared->arbiter.heartbeat_ns = 1;
		own()->grant.mode = MODE_HOLD;
	}
	for (int i = 0; i < PATIENT; i++)
		cu_need(launch_on(NULL, 1), "cuLaunchKernel");
	printf("synchronised %d\n", cuCtxSynchronize());
	if (shared)
		CHECK(own()->counts.expired == 0);
}

/* A program that may write to the file asks for endless patience, and a request that never gets
 * old. */
static void patience(void)
{
	launch_on(NULL, 1);
	const pthread_t t = other_stays();
	if (shared)
		own()->grant.max_wait_ns = UINT64_MAX;
	for (int i = 0; i < 5; i++)
		cu_need(launch_on(NULL, 1), "cuLaunchKernel");
	printf("synchronised %d\n", cuCtxSynchronize());
	other_ends(t);
}

/* A launch that was capped as an ordinary one is not, when its blocks are to be there together. */
static void cooperative(void)
{
	const struct {
		unsigned shape[7];
		void *stream;
		void *attrs;
		unsigned n;
	} cluster = { { 4, 1, 1, 32, 1, 1, 0 }, NULL, &(struct {
			     int id, pad;
			     int value[16];
		     }){ 2, 0, { 1 } },
		1 };
	launch_on(NULL, 1);
	const pthread_t t = other_stays();
	if (shared)
		grant_caps(16, 16);
	printf("plain %d\n", launch_on(NULL, 4));
	const uint64_t before = own()->counts.capped;
	if (shared)
		CHECK(before == 1);
	printf("together %d\n",
		cuLaunchCooperativeKernel(cu_kernel, 4, 1, 1, 32, 1, 1, 0, NULL, NULL));
	CHECK(own()->counts.capped == before);
	printf("as cooperative %d\n", cuLaunchKernelEx(&cluster, cu_kernel, NULL, NULL));
	CHECK(own()->counts.capped == before);
	printf("synchronised %d\n", cuCtxSynchronize());
	other_ends(t);
}

/* More blocks than the SMs hold to which they would go, fewer than the device: each may wait for
 * all others, by hand.  132 SMs hold 32 blocks each. */
static void barrier(void)
{
	launch_on(NULL, 1);
	const pthread_t t = other_stays();
	if (shared)
		grant_caps(64, 8);
	printf("launched %d\n", launch_on(NULL, 132 * 32));
	CHECK(own()->counts.capped == 0);
	printf("launched %d\n", launch_on(NULL, 8 * 32 + 1)); /* may go to 64, but not to 8 */
	CHECK(own()->counts.capped == 0);
	printf("synchronised %d\n", cuCtxSynchronize());
	other_ends(t);
}

/* Streams of the primary context are no place for kernels of another. */
static void contexts_capped(void)
{
	void *context, *module, *function;
	launch_on(NULL, 1);
	const pthread_t t = other_stays();
	if (shared)
		grant_caps(16, 16);
	cu_need(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
	cu_need(cuModuleLoadData(&module, cu_image), "cuModuleLoadData");
	cu_need(cuModuleGetFunction(&function, module, "nothing"), "cuModuleGetFunction");
	printf("launched %d\n", cuLaunchKernel(function, 4, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	printf("synchronised %d\n", cuCtxSynchronize());
	printf("destroyed %d\n", cuCtxDestroy_v2(context));
	printf("launched %d\n", launch_on(NULL, 4));
	printf("synchronised %d\n", cuCtxSynchronize());
	other_ends(t);
}

/* Contexts end, with work in them, and come again. */
static void contexts(void)
{
	void *context, *module, *function, *s;
	other_comes(false);
	for (int i = 0; i < 20; i++) {
		cu_need(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
		cu_need(cuModuleLoadData(&module, cu_image), "cuModuleLoadData");
		cu_need(cuModuleGetFunction(&function, module, "nothing"), "cuModuleGetFunction");
		s = stream_new();
		for (int k = 0; k < 20; k++)
			cu_need(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL),
				"cuLaunchKernel");
		cu_need(cuCtxDestroy_v2(context), "cuCtxDestroy");
	}
	cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
	for (int k = 0; k < 20; k++)
		cu_need(launch_on(NULL, 1), "cuLaunchKernel");
	printf("synchronised %d\n", cuCtxSynchronize());
	if (shared) {
		CHECK(own()->counts.unmarked == 0);
		CHECK(!own()->work.inside);
	}
}

/* The device is made anew, and the same again. */
static void reset(void)
{
	other_comes(false);
	for (int i = 0; i < 5; i++) {
		for (int k = 0; k < 20; k++)
			cu_need(launch_on(NULL, 1), "cuLaunchKernel");
		cu_need(cuDevicePrimaryCtxReset_v2(0), "cuDevicePrimaryCtxReset");
		cu_prepare();
	}
	printf("synchronised %d\n", cuCtxSynchronize());
	if (shared) {
		CHECK(own()->counts.unmarked == 0);
		CHECK(!own()->work.inside);
	}
}

/* A kernel comes to where another was, and may be resident fewer times. */
static void modules(void)
{
	static const char large[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
				    ".visible .entry nothing()\n{\n"
				    "	.shared .align 4 .b8 buffer[40000];\n"
				    "	ret;\n}\n";
	void *module, *function, *again;
	launch_on(NULL, 1);
	const pthread_t t = other_stays();
	if (shared)
		grant_caps(16, 16);
	cu_need(cuModuleLoadData(&module, cu_image), "cuModuleLoadData");
	cu_need(cuModuleGetFunction(&function, module, "nothing"), "cuModuleGetFunction");
	printf("launched %d\n", cuLaunchKernel(function, 200, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	printf("synchronised %d\n", cuCtxSynchronize());
	const uint64_t before = own()->counts.capped;
	if (shared)
		CHECK(before == 1);
	cu_need(cuModuleUnload(module), "cuModuleUnload");
	cu_need(cuModuleLoadData(&module, large), "cuModuleLoadData");
	cu_need(cuModuleGetFunction(&again, module, "nothing"), "cuModuleGetFunction");
	if (again != function)
		fprintf(stderr, "another handle was given out\n");
	printf("launched %d\n", cuLaunchKernel(again, 200, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	CHECK(own()->counts.capped == before);
	printf("synchronised %d\n", cuCtxSynchronize());
	other_ends(t);
}

/* Streams end with work in them that no event stands behind. */
static void streams_end(void)
{
	launch_on(NULL, 1);
	other_comes(false);
	if (shared)
		own()->grant.budget_ns = 1000000000;
	for (int i = 0; i < 300; i++) {
		void *s = stream_new();
		cu_need(launch_on(s, 1), "cuLaunchKernel");
		cu_need(cuStreamDestroy_v2(s), "cuStreamDestroy");
		if (shared && i % 10 == 9)
			own()->grant.budget_ns = i % 20 == 9 ? 1 : 1000000000;
	}
	printf("synchronised %d\n", cuCtxSynchronize());
	if (shared) {
		CHECK(own()->counts.unmarked == 0);
		CHECK(own()->counts.expired == 0);
		CHECK(!own()->work.inside);
	}
}

/* More streams than there are entries for them: each request ends with its own synchronisation. */
static void many_streams(void)
{
	enum { MANY = 600 };
	static void *s[MANY];
	for (int i = 0; i < MANY; i++) {
		s[i] = stream_new();
		cu_need(launch_on(s[i], 1), "cuLaunchKernel");
		cu_need(cuStreamSynchronize(s[i]), "cuStreamSynchronize");
		if (shared)
			CHECK(!own()->work.inside);
	}
	cu_need(cuLaunchHostFunc(s[MANY - 1], hold, NULL), "cuLaunchHostFunc");
	cu_need(launch_on(s[MANY - 1], 1), "cuLaunchKernel");
	cu_need(launch_on(s[MANY - 2], 1), "cuLaunchKernel");
	cu_need(cuStreamSynchronize(s[MANY - 2]), "cuStreamSynchronize");
	if (shared)
		CHECK(own()->work.inside); /* the other is not done */
	atomic_store(&released, 1);
	printf("synchronised %d\n", cuCtxSynchronize());
	if (shared)
		CHECK(!own()->work.inside);
}

static void *launch_and_leave(void *unused)
{
	cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
	for (int i = 0; i < 3; i++)
		cu_need(cuLaunchKernel_ptsz(cu_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL),
			"cuLaunchKernel_ptsz");
	cu_need(cuStreamSynchronize_ptsz(NULL), "cuStreamSynchronize_ptsz");
	return NULL;
}

/* A thread for each request, and a default stream for each thread. */
static void many_threads(void)
{
	for (int i = 0; i < 600; i++) {
		pthread_t t;
		cu_need(pthread_create(&t, NULL, launch_and_leave, NULL), "pthread_create");
		pthread_join(t, NULL);
		if (shared)
			CHECK(!own()->work.inside);
	}
	printf("synchronised %d\n", cuCtxSynchronize());
}

/* Failed launches are nobody's work. */
static void failures(void)
{
	void *good = stream_new(), *no_stream = stream_new();
	printf("none %d\n", cuLaunchKernelEx(NULL, cu_kernel, NULL, NULL) != 0);
	printf("empty %d\n", launch_on(stream_new(), 0));
	cuStreamDestroy_v2(no_stream);
	printf("no stream %d\n", launch_on(no_stream, 1) != 0);
	printf("no kernel %d\n",
		cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, stream_new(), NULL, NULL) != 0);
	printf("launched %d\n", launch_on(good, 1));
	printf("synchronised %d\n", cuStreamSynchronize(good));
	if (shared)
		CHECK(!own()->work.inside);
}

/* An event stands for what it was recorded behind last, and for nothing when it is a new one. */
static void events(void)
{
	void *busy = stream_new(), *idle = stream_new(), *event, *other;
	cu_need(cuEventCreate(&event, 2), "cuEventCreate");
	cu_need(cuLaunchHostFunc(busy, hold, NULL), "cuLaunchHostFunc");
	cu_need(launch_on(busy, 1), "cuLaunchKernel");
	cu_need(cuEventRecord(event, busy), "cuEventRecord");
	cu_need(cuEventRecord(event, idle), "cuEventRecord");
	printf("came %d\n", cuEventSynchronize(event));
	if (shared)
		CHECK(own()->work.inside);
	cu_need(cuEventRecord(event, busy), "cuEventRecord");
	cu_need(cuEventDestroy_v2(event), "cuEventDestroy");
	cu_need(cuEventCreate(&other, 2), "cuEventCreate");
	printf("new one %d\n", cuEventSynchronize(other));
	if (shared)
		CHECK(own()->work.inside);
	atomic_store(&released, 1);
	printf("synchronised %d\n", cuStreamSynchronize(busy));
	if (shared)
		CHECK(!own()->work.inside);
}

/* Streams that come together: who waits for the last has waited for all. */
static void joins(void)
{
	void *a = stream_new(), *b = stream_new(), *event;
	cu_need(cuEventCreate(&event, 2), "cuEventCreate");
	for (int i = 0; i < 10; i++) {
		cu_need(launch_on(a, 1), "cuLaunchKernel");
		cu_need(cuEventRecord(event, a), "cuEventRecord");
		cu_need(cuStreamWaitEvent(b, event, 0), "cuStreamWaitEvent");
		cu_need(launch_on(b, 1), "cuLaunchKernel");
		cu_need(cuStreamSynchronize(b), "cuStreamSynchronize");
		if (shared)
			CHECK(!own()->work.inside);
	}
	printf("joined\n");
}

static atomic_int waiter;

static void *wait_for(void *stream)
{
	atomic_store(&waiter, gettid());
	cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
	printf("waited %d\n", cuStreamSynchronize(stream));
	return NULL;
}

static bool is_asleep(int tid)
{
	char path[64], state = 0;
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
	FILE *stat = fopen(path, "r");
	const bool read = stat && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1;
	if (stat)
		fclose(stat);
	return read && state == 'S';
}

/* Until it is asleep at each of many looks: on its way to the wait it sleeps for moments only. */
static void await_waiter(void)
{
	for (int looks = 0; looks < 50; usleep(1000))
		looks = atomic_load(&waiter) && is_asleep(atomic_load(&waiter)) ? looks + 1 : 0;
}

/* Requests on a stream: how many of so many are over when their wait returns. */
static int requests_over(void *stream, int n)
{
	int over = 0;
	for (int i = 0; i < n; i++) {
		cu_need(launch_on(stream, 1), "cuLaunchKernel");
		cu_need(cuStreamSynchronize(stream), "cuStreamSynchronize");
		over += shared && !own()->work.inside;
	}
	return over;
}

/* A request does not last for work that no call waits for, but for work that one waits for. */
static void left(void)
{
	enum { REQUESTS = 20, SKIPS = 3 };
	void *own_stream = stream_new(), *beside = stream_new();
	pthread_t t;
	cu_need(cuLaunchHostFunc(beside, hold, NULL), "cuLaunchHostFunc");
	cu_need(launch_on(beside, 1), "cuLaunchKernel");
	int over = requests_over(own_stream, REQUESTS);
	if (shared)
		CHECK(over == REQUESTS - SKIPS + 1);
	cu_need(launch_on(beside, 1), "cuLaunchKernel"); /* that begins none either */
	if (shared)
		CHECK(!own()->work.inside);

	cu_need(pthread_create(&t, NULL, wait_for, beside), "pthread_create");
	await_waiter();
	over = requests_over(own_stream, REQUESTS);
	if (shared)
		CHECK(over == 0);
	atomic_store(&released, 1);
	pthread_join(t, NULL);
	if (shared)
		CHECK(!own()->work.inside);
	cu_need(launch_on(beside, 1), "cuLaunchKernel");
	if (shared)
		CHECK(own()->work.inside);
	printf("synchronised %d\n", cuCtxSynchronize());
	if (shared)
		CHECK(!own()->work.inside);
}

static void *capture_beside(void *context)
{
	void *s, *graph;
	cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
	s = stream_new();
	while (shared && !atomic_load_explicit(&stop_peer, memory_order_relaxed) &&
		own()->counts.waits == 0 && !atomic_load(&held))
		sched_yield();
	for (int mode = 0; mode < 3; mode++) {
		cu_need(cuStreamBeginCapture_v2(s, mode), "cuStreamBeginCapture");
		for (int i = 0; i < 2000; i++)
			cu_need(launch_on(s, 1), "cuLaunchKernel");
		printf("captured %d\n", cuStreamEndCapture(s, &graph));
	}
	return NULL;
}

/* One thread captures, in each mode, while another launches and waits. */
static void capture(void)
{
	pthread_t t;
	void *s = stream_new();
	launch_on(s, 1);
	const pthread_t other = other_stays();
	atomic_store(&held, 1);
	pthread_create(&t, NULL, capture_beside, NULL);
	for (int i = 0; i < 200; i++)
		cu_need(launch_on(s, 1 + (unsigned)i % 7), "cuLaunchKernel");
	pthread_join(t, NULL);
	printf("synchronised %d\n", cuStreamSynchronize(s));
	other_ends(other);
}

/* errno is the program's, over each call that passes here. */
static void errno_stays(void)
{
	uint64_t memory;
	void *event, *s = stream_new();
	int kept = 1;
	cu_need(cuMemAlloc_v2(&memory, 1 << 20), "cuMemAlloc");
	cu_need(cuEventCreate(&event, 2), "cuEventCreate");
	errno = 4711;
	launch_on(s, 1);
	kept = kept && errno == 4711;
	const pthread_t t = other_stays();
	if (shared && is_mps)
		grant_caps(16, 16);
	for (int i = 1; i < 4; i++) {
		errno = 4711;
		launch_on(s, (unsigned)i);
		kept = kept && errno == 4711;
		cuEventRecord(event, s);
		kept = kept && errno == 4711;
		cuEventSynchronize(event);
		kept = kept && errno == 4711;
		cuStreamSynchronize(s);
		kept = kept && errno == 4711;
		cuCtxSynchronize();
		kept = kept && errno == 4711;
	}
	other_ends(t);
	errno = 4711;
	cuStreamDestroy_v2(s);
	printf("kept %d\n", kept && errno == 4711);
}

/* The child has no part of what its parent has; what it says at its end least of all. */
static void child(void)
{
	launch_on(NULL, 1);
	const struct share_slot *mine = own();
	const struct share_slot before = *mine;
	for (int i = 0; i < 3; i++) {
		const pid_t pid = i == 2 ? vfork() : fork();
		if (!pid && i == 2)
			_exit(0);
		if (!pid && i == 1)
			_exit(launch_on(NULL, 1) ? 0 : 1);
		if (!pid)
			exit(0);
		int status;
		waitpid(pid, &status, 0);
		printf("child %d\n", status);
	}
	if (shared) {
		CHECK(mine->who.state == SLOT_LIVE && mine->who.pid == before.who.pid);
		CHECK(mine->work.requests == before.work.requests);
	}
	printf("synchronised %d\n", cuCtxSynchronize());
}

/* Each word of the file becomes anything at all. */
static void *write_nonsense(void *unused)
{
	uint64_t lot = 88172645463325252u;
	const uint64_t values[] = { 0, 1, UINT64_MAX, 1ull << 63, 0xffffffff, now_ns(), 77, 256,
		65536 };
	while (!atomic_load_explicit(&stop_peer, memory_order_relaxed)) {
		lot ^= lot << 13, lot ^= lot >> 7, lot ^= lot << 17;
		const size_t at = lot % (sizeof *shared / 8);
		const uint64_t value =
			lot >> 40 & 1 ? values[(lot >> 50) % 9] : lot * 0x9e3779b97f4a7c15u;
		atomic_store_explicit((_Atomic uint64_t *)shared + at, value, memory_order_relaxed);
		atomic_store_explicit((_Atomic uint64_t *)own() +
					      (lot >> 30) % (sizeof(struct share_work) * 3 / 8),
			value, memory_order_relaxed);
	}
	return NULL;
}

static void nonsense(void)
{
	pthread_t t;
	void *s = stream_new();
	launch_on(s, 1);
	other_comes(true);
	if (shared)
		pthread_create(&t, NULL, write_nonsense, NULL);
	for (int i = 0; i < 3000; i++) {
		cu_need(launch_on(s, 1 + (unsigned)i % 5), "cuLaunchKernel");
		if (i % 10 == 9)
			cu_need(cuStreamSynchronize(s), "cuStreamSynchronize");
	}
	printf("synchronised %d\n", cuCtxSynchronize());
	other_ends(t);
}

/* For tests/storm/sched.py: requests, until it is killed or done. */
static void work(void)
{
	for (int i = 0; i < 500; i++) {
		for (unsigned k = 0; k < 5; k++)
			cu_need(launch_on(NULL, 1 + k), "cuLaunchKernel");
		cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
	}
}

/* Requests that each leave work on a stream that nobody ever waits for, until told to end. */
#define LEFT_MOST 500 /* fewer than a queue holds, in which the next launch would wait for room */

static void leaves_work(void)
{
	void *requests = stream_new(), *beside = stream_new();
	puts("serves");
	fflush(stdout);
	while (access("ends", F_OK)) {
		atomic_store(&released, 0);
		cu_need(cuLaunchHostFunc(beside, hold, NULL), "cuLaunchHostFunc");
		for (int left = 0; left < LEFT_MOST && access("ends", F_OK); left++) {
			cu_need(launch_on(beside, 1), "cuLaunchKernel");
			cu_need(launch_on(requests, 1), "cuLaunchKernel");
			cu_need(cuStreamSynchronize(requests), "cuStreamSynchronize");
			usleep(1000);
		}
		atomic_store(&released, 1);
		cu_need(cuStreamSynchronize(beside), "cuStreamSynchronize");
	}
}

/* And what is to be left of those that were: nothing. */
static void clean(void)
{
	for (uint32_t i = 0; shared && i < SHARE_SLOTS; i++)
		CHECK(shared->slots[i].who.state == SLOT_FREE);
	for (uint32_t i = 0; shared && i < SHARE_DEVICES; i++) {
		CHECK(!share_any(shared->devices[i].present));
		CHECK(!share_any(shared->devices[i].active));
		CHECK(!share_any(shared->devices[i].members));
	}
	CHECK(shared != NULL);
}

/* Meanwhile: what is shared goes with the last process that has it. */
static void keeps(void)
{
	CHECK(shared != NULL);
	puts("kept");
	fflush(stdout);
	pause();
}

static const struct regulated_case cases[] = { { "depends", depends, false },
	{ "backlog", backlog, false }, { "marks", marks, false }, { "orphan", orphan, false },
	{ "patience", patience, false }, { "cooperative", cooperative, false },
	{ "barrier", barrier, false }, { "contexts_capped", contexts_capped, false },
	{ "contexts", contexts, false }, { "reset", reset, false }, { "modules", modules, false },
	{ "streams_end", streams_end, false }, { "many_streams", many_streams, false },
	{ "many_threads", many_threads, false }, { "failures", failures, false },
	{ "events", events, false }, { "joins", joins, false }, { "left", left, false },
	{ "capture", capture, false }, { "errno", errno_stays, false }, { "child", child, false },
	{ "nonsense", nonsense, false }, { "work", work, false },
	{ "leaves_work", leaves_work, false }, { "clean", clean, false }, { "keeps", keeps, true },
	{ NULL, NULL, false } };

int main(int argc, char **argv)
{
	return run_case(cases, argc == 2 ? argv[1] : NULL);
}
