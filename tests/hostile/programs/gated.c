/*
 * Programs that do at the gate what nobody expects there: `gated CASE`.  A launch of theirs waits
 * for a request of another program, which ends when the case says so and not by the clock:
 * --max-wait is 30 s, and a launch that was let go by that has failed.
 */
#include "regulated.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LAST_FUNCTIONS(X) X(cuThreadExchangeStreamCaptureMode, (int *))
LAST_FUNCTIONS(CU_DECLARE)

#define LAST_RESOLVE(name, parameters)                                                             \
	*(void **)&name = dlsym(cu_library, #name);                                                \
	cu_need(!name, #name);

static pthread_t first; /* the thread that waits */
static atomic_int at_gate, alone_through, interrupted;
static void *stream;

/* A request that is believed for longer than anybody waits. */
static void other_begins(void)
{
	other_comes(true);
	if (shared)
		shared->slots[OTHER].work.begun_ns = now_ns() + 20000000000u;
}

/* A launch there knows all that it needs to: no call of the driver is in its way to the gate. */
static void come_to_gate(void)
{
	LAST_FUNCTIONS(LAST_RESOLVE)
	stream = stream_new();
	first = pthread_self();
	cu_need(launch_on(stream, 1), "cuLaunchKernel");
	cu_need(cuStreamSynchronize(stream), "cuStreamSynchronize");
	other_comes(false);
	cu_need(launch_on(stream, 1), "cuLaunchKernel");
	cu_need(cuStreamSynchronize(stream), "cuStreamSynchronize");
	other_begins();
}

static void other_leaves(void)
{
	if (shared)
		share_bit_clear(shared->devices[0].active, OTHER);
}

static int capture_mode(void)
{
	int was = 0, again;
	cuThreadExchangeStreamCaptureMode(&was);
	again = was;
	cuThreadExchangeStreamCaptureMode(&again);
	return was;
}

static void await(const atomic_int *what)
{
	while (!atomic_load(what))
		sched_yield();
}

/* Until the first thread is at the gate, or has nothing to wait for. */
static void await_first(void)
{
	await(shared ? &at_gate : &alone_through);
	if (shared)
		usleep(2000); /* nothing hangs on it: it may be anywhere on its way */
}

/* How often a thread has slept so far. */
static long naps_of(pid_t tid)
{
	char path[64], line[256];
	long n = 0;
	snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)tid);
	FILE *status = fopen(path, "r");
	while (status && fgets(line, sizeof line, status))
		sscanf(line, "voluntary_ctxt_switches: %ld", &n);
	if (status)
		fclose(status);
	return n;
}

/* Until a thread waits at the gate, or has passed.  A thread that waits for a long request sleeps
 * again and again; on its way to the gate a thread sleeps a few times at most. */
static void await_wait(pid_t tid, const atomic_int *passed)
{
	enum { AGAIN_AND_AGAIN = 20 };
	const long begun = naps_of(tid);
	while (shared && !atomic_load(passed) && naps_of(tid) < begun + AGAIN_AND_AGAIN)
		usleep(1000);
}

static pthread_t start_thread(void *(*run)(void *))
{
	pthread_t t;
	cu_need(pthread_create(&t, NULL, run, NULL), "pthread_create");
	return t;
}

/* The end of every case: all is as it was. */
static void in_order(void)
{
	printf("mode %d\n", capture_mode());
	for (unsigned i = 0; i < 20; i++)
		cu_need(launch_on(stream, 1 + i % 3), "cuLaunchKernel");
	printf("synchronised %d\n", cuCtxSynchronize());
	if (!shared)
		return;
	CHECK(!own()->work.inside);
	CHECK(own()->work.submitted_ns == own()->work.retired_ns);
	CHECK(own()->counts.unmarked == 0);
	CHECK(own()->counts.expired == 0);
}

static int seen_mode, handler_launched;

static void on_launch(int unused)
{
	atomic_store(&interrupted, 1);
	seen_mode = capture_mode();
	handler_launched = launch_on(stream, 1);
}

static void *interrupt(void *unused)
{
	await_first();
	pthread_kill(first, SIGUSR1);
	await(&interrupted);
	other_leaves();
	return NULL;
}

/* A handler launches while its thread waits at the gate. */
static void handler(void)
{
	signal(SIGUSR1, on_launch);
	come_to_gate();
	const pthread_t t = start_thread(interrupt);
	atomic_store(&at_gate, 1);
	printf("launched %d\n", launch_on(stream, 1));
	atomic_store(&alone_through, 1);
	pthread_join(t, NULL);
	await(&interrupted);
	printf("handler: launched %d, mode %d\n", handler_launched, seen_mode);
	in_order();
	if (shared)
		CHECK(own()->counts.waits >= 2);
}

enum { JUMPS = 300 };
static sigjmp_buf before;
static atomic_int jumps;

static void on_jump(int unused)
{
	atomic_store(&at_gate, 0);
	atomic_store(&alone_through, 0);
	atomic_fetch_add(&jumps, 1);
	siglongjmp(before, 1);
}

static void *interrupt_often(void *unused)
{
	for (int i = 0; i < JUMPS; i++) {
		await_first();
		pthread_kill(first, SIGUSR1);
		while (atomic_load(&jumps) == i)
			sched_yield();
	}
	return NULL;
}

/* A handler leaves the wait for good: the launch is never made. */
static void jump(void)
{
	signal(SIGUSR1, on_jump);
	come_to_gate();
	const pthread_t t = start_thread(interrupt_often);
	while (!sigsetjmp(before, 1) || atomic_load(&jumps) < JUMPS) {
		atomic_store(&alone_through, 1);
		atomic_store(&at_gate, 1);
		if (shared)
			cu_need(1000 + launch_on(stream, 1), "a launch that should have waited");
		for (;;)
			sched_yield();
	}
	pthread_join(t, NULL);
	other_leaves();
	printf("jumped %d\n", atomic_load(&jumps));
	in_order();
}

static void *launch_then_test(void *unused)
{
	cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
	first = pthread_self();
	atomic_store(&at_gate, 1);
	cu_need(launch_on(stream, 1), "cuLaunchKernel");
	atomic_store(&alone_through, 1);
	for (;;) {
		pthread_testcancel();
		sched_yield();
	}
	return NULL;
}

static void *launch_anytime(void *unused)
{
	cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
	first = pthread_self();
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	atomic_store(&alone_through, 1);
	atomic_store(&at_gate, 1);
	if (shared)
		launch_on(stream, 1);
	for (;;)
		;
	return NULL;
}

static void cancel_one(void *(*run)(void *), bool waits)
{
	void *ended = NULL;
	atomic_store(&at_gate, 0);
	atomic_store(&alone_through, 0);
	other_begins();
	const pthread_t t = start_thread(run);
	await_first();
	pthread_cancel(t);
	if (waits)
		other_leaves();
	pthread_join(t, &ended);
	other_leaves();
	printf("cancelled %d\n", ended == PTHREAD_CANCELED);
}

/* A thread is cancelled at the gate: no point of ours is one where it may be; or anywhere. */
static void cancel(void)
{
	come_to_gate();
	for (int i = 0; i < 20; i++) {
		cancel_one(launch_then_test, true);
		cancel_one(launch_anytime, false);
	}
	in_order();
}

static void *launch_in_thread(void *unused)
{
	cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
	atomic_store(&at_gate, 1);
	cu_need(launch_on(stream, 1), "cuLaunchKernel");
	atomic_store(&alone_through, 1);
	return NULL;
}

/* Registered before there is a driver, so the last one. */
static void last_of_exit(void)
{
	await(&alone_through);
	printf("through\n");
	if (!shared)
		return;
	other_leaves();
	share_bit_clear(shared->devices[0].present, OTHER);
	shared->slots[OTHER].who.state = SLOT_FREE;
}

/* The program ends while another thread of it waits: that goes on, unregulated. */
static void exits(void)
{
	atexit(last_of_exit);
	cu_prepare();
	come_to_gate();
	start_thread(launch_in_thread);
	await_first();
	exit(bad > 0);
}

static char self[256];

static void become(const char *name)
{
	fflush(stdout);
	execl(self, self, name, (char *)NULL);
	exit(98);
}

static uint32_t own_slots(void)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		n += shared->slots[i].who.state == SLOT_LIVE &&
		     shared->slots[i].who.pid == (uint32_t)getpid();
	return n;
}

/* exec while a thread waits, and work is in flight. */
static void execs(void)
{
	come_to_gate();
	start_thread(launch_in_thread);
	await_first();
	if (shared)
		CHECK(own_slots() == 1);
	become("became");
}

/* The class before does not stand in its way, nor in others'. */
static void became(void)
{
	if (shared) {
		CHECK(own_slots() == 1);
		other_leaves();
	}
	LAST_FUNCTIONS(LAST_RESOLVE)
	stream = stream_new();
	in_order();
	if (shared)
		CHECK(own_slots() == 1);
}

/* exec to a program that uses another device. */
static void moves(void)
{
	stream = stream_new();
	cu_need(launch_on(stream, 1), "cuLaunchKernel");
	become("moved");
}

static void use_device(int device)
{
	void *module;
	cu_need(cuDevicePrimaryCtxRetain(&cu_context, device), "cuDevicePrimaryCtxRetain");
	cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
	cu_need(cuModuleLoadData(&module, cu_image), "cuModuleLoadData");
	cu_need(cuModuleGetFunction(&cu_kernel, module, "nothing"), "cuModuleGetFunction");
}

static void moved(void)
{
	use_device(1);
	printf("launched %d\n", launch_on(NULL, 1));
	printf("synchronised %d\n", cuCtxSynchronize());
	if (shared)
		CHECK(own_slots() == 1);
}

/* Children that no handler of fork() hears of. */
static void clones(void)
{
	come_to_gate();
	other_leaves();
	if (shared)
		share_bit_clear(shared->devices[0].present, OTHER);
	for (int i = 0; i < 5; i++) {
		int status = -1;
		cu_need(launch_on(stream, 1), "cuLaunchKernel");
		fflush(stdout);
		const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (!child) {
			for (int k = 0; k < 3; k++) /* the first begins the process */
				cu_need(launch_on(stream, 1), "cuLaunchKernel");
			if (shared)
				CHECK(own_slots() == 1);
			fflush(stdout);
			_exit(bad > 0);
		}
		waitpid(child, &status, 0);
		printf("child %d\n", status);
	}
	if (shared)
		CHECK(own_slots() == 1);
	in_order();
}

/* The same, before their parent has come to CUDA: each is a program of its own. */
static void clones_first(void)
{
	for (int i = 0; i < 5; i++) {
		int status = -1;
		fflush(stdout);
		const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (!child) {
			cu_prepare();
			come_to_gate();
			other_leaves();
			in_order();
			if (shared)
				CHECK(own_slots() == 1);
			fflush(stdout);
			_exit(bad > 0);
		}
		waitpid(child, &status, 0);
		printf("child %d\n", status);
	}
	cu_prepare();
	come_to_gate();
	other_leaves();
	in_order();
}

/* The driver goes with marks outstanding, and comes again where it was. */
static void reloads(void)
{
	for (int i = 0; i < 3; i++) {
		cu_prepare();
		come_to_gate();
		other_leaves();
		for (int k = 0; k < 20; k++)
			cu_need(launch_on(stream, 4), "cuLaunchKernel");
		printf("mode %d\n", capture_mode());
		printf("closed %d\n", dlclose(cu_library));
		printf("gone %d\n", !dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
		cu_open();
		MORE_FUNCTIONS(LAST_RESOLVE)
	}
	cu_prepare();
	come_to_gate();
	other_leaves();
	in_order();
}

static atomic_int through_gate;

/* Lets the first thread go when it waits, or has gone on by itself. */
static void *let_go_soon(void *unused)
{
	await(&at_gate);
	await_wait(getpid(), &through_gate);
	other_leaves();
	return NULL;
}

/* The first thread has passed the gate, also if it did not wait there. */
static void passed(pthread_t t)
{
	atomic_store(&through_gate, 1);
	pthread_join(t, NULL);
}

/* Graphs are never capped: they wait. */
static void graphs(void)
{
	void *graph, *exec;
	come_to_gate();
	cu_need(cuStreamBeginCapture_v2(stream, 0), "cuStreamBeginCapture");
	for (int i = 0; i < 5; i++)
		cu_need(launch_on(stream, 4), "cuLaunchKernel");
	cu_need(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
	cu_need(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
	if (shared)
		grant_caps(16, 16);
	printf("kernel %d\n", launch_on(stream, 4));
	const uint64_t before_it = own()->counts.capped;
	const uint64_t waits = own()->counts.waits;
	if (shared)
		CHECK(before_it == 1);
	const pthread_t t = start_thread(let_go_soon);
	atomic_store(&at_gate, 1);
	printf("graph %d\n", cuGraphLaunch(exec, stream));
	passed(t);
	if (shared) {
		CHECK(own()->counts.waits == waits + 1);
		own()->grant.full_below_ns = 0;
	}
	printf("kernel %d\n", launch_on(stream, 4));
	if (shared)
		CHECK(own()->counts.capped == before_it + 1);
	for (int i = 0; i < 5; i++)
		printf("graph %d\n", cuGraphLaunch(exec, stream));
	if (shared)
		CHECK(own()->counts.capped == before_it + 1);
	if (shared)
		own()->grant.full_below_ns = UINT64_MAX;
	in_order();
}

/* More sizes of caps, one after the other, than are kept at a time. */
static void sizes(void)
{
	come_to_gate();
	for (uint16_t sms = 8; sms <= 80; sms += 8) {
		if (shared)
			grant_caps(sms, sms);
		const uint64_t before_it = own()->counts.capped;
		const pthread_t t = start_thread(let_go_soon);
		atomic_store(&at_gate, 1);
		printf("launched %d\n", launch_on(stream, 4));
		passed(t);
		printf("synchronised %d\n", cuStreamSynchronize(stream));
		if (shared)
			CHECK(own()->counts.capped == before_it + 1);
		atomic_store(&at_gate, 0);
		atomic_store(&through_gate, 0);
		other_begins();
	}
	other_leaves();
	in_order();
}

/* One device's work is nobody's business on another. */
static void devices(void)
{
	void *context[3], *function[3];
	for (int i = 0; i < 3; i++) {
		use_device(i);
		context[i] = cu_context;
		function[i] = cu_kernel;
		cu_need(launch_on(NULL, 1), "cuLaunchKernel");
		cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
	}
	if (shared)
		CHECK(own_slots() == 3);
	other_begins(); /* on the first */
	for (int round = 0; round < 20; round++)
		for (int i = 1; i < 3; i++) {
			cu_need(cuCtxSetCurrent(context[i]), "cuCtxSetCurrent");
			cu_kernel = function[i];
			cu_need(launch_on(NULL, 1), "cuLaunchKernel");
			if (shared)
				CHECK(own_on((uint32_t)i)->work.inside);
			cu_need(cuCtxSynchronize(), "cuCtxSynchronize");
		}
	if (shared)
		CHECK(own_on(1)->counts.waits == 0 && own_on(2)->counts.waits == 0);
	cu_need(cuCtxSetCurrent(context[0]), "cuCtxSetCurrent");
	cu_kernel = function[0];
	const pthread_t t = start_thread(let_go_soon);
	atomic_store(&at_gate, 1);
	printf("launched %d\n", launch_on(NULL, 1));
	passed(t);
	printf("synchronised %d\n", cuCtxSynchronize());
	for (uint32_t i = 0; shared && i < 3; i++) {
		CHECK(own_on(i)->counts.waits == (i == 0));
		CHECK(own_on(i)->counts.expired == 0);
		CHECK(!own_on(i)->work.inside);
	}
}

enum { FULL = 100 }; /* launches of a full queue */

/* All rest, says an arbiter that stands still from then on. */
static void others_rest(void)
{
	other_leaves();
	if (!shared)
		return;
	struct share_slot *s = own();
	s->grant.alone_ns = 1000000000000000;
	s->grant.budget_ns = 1;
	s->grant.mode = MODE_GATE;
	s->grant.rest = (uint32_t)shared->devices[0].requests + 1;
}

static void *release_soon(void *unused)
{
	await(&at_gate);
	await_wait(getpid(), &through_gate);
	other_leaves();
	atomic_store(&released, 1);
	return NULL;
}

static void fill_queue(void)
{
	atomic_store(&released, 0);
	cu_need(cuLaunchHostFunc(stream, hold, NULL), "cuLaunchHostFunc");
	for (int i = 0; i < FULL; i++)
		cu_need(launch_on(stream, 1), "cuLaunchKernel");
}

/* It waits once; nothing else is let go before it waits. */
static void launch_waits(void)
{
	const uint64_t before_it = own()->counts.waits;
	atomic_store(&at_gate, 0);
	atomic_store(&through_gate, 0);
	const pthread_t t = start_thread(release_soon);
	atomic_store(&at_gate, 1);
	printf("launched %d\n", launch_on(stream, 1));
	passed(t);
	printf("synchronised %d\n", cuStreamSynchronize(stream));
	if (shared)
		CHECK(own()->counts.waits == before_it + 1);
}

/* While the others rest a full queue waits for nobody, be they stopped or dead.  A request of
 * theirs ends that before anybody decides anew, also if its program was no latency program when it
 * began.
 */
static void rests(void)
{
	come_to_gate();
	other_leaves();
	for (int i = 0; i < 4 * FULL; i++) /* its time is known then */
		cu_need(launch_on(stream, 1), "cuLaunchKernel");
	cu_need(cuStreamSynchronize(stream), "cuStreamSynchronize");
	for (int round = 0; round < 6; round++) {
		const bool is_counted = round % 2;
		others_rest();
		if (shared) /* dead, and not buried */
			shared->slots[OTHER].who.pid = round % 3 ? 1 : INT32_MAX;
		const uint64_t before_it = own()->counts.waits;
		fill_queue();
		if (shared) {
			CHECK(own()->counts.waits == before_it);
			own()->grant.budget_ns = own()->grant.alone_ns;
		}
		if (shared && is_counted)
			atomic_fetch_add_explicit(
				&shared->devices[0].requests, 1, memory_order_relaxed);
		other_begins();
		launch_waits();
	}
	in_order();
}

static void *open_soon(void *unused)
{
	await(&at_gate);
	await_wait(getpid(), &through_gate);
	if (shared)
		shared->arbiter.open = 1;
	return NULL;
}

/* Gates that are opened are open to those who wait already. */
static void opened(void)
{
	come_to_gate();
	const pthread_t t = start_thread(open_soon);
	atomic_store(&at_gate, 1);
	printf("launched %d\n", launch_on(stream, 1));
	passed(t);
	in_order();
}

/* If weir sched set has missed the program, since it was just going in, the program takes it back.
 * */
static void reclassed(void)
{
	stream = stream_new();
	LAST_FUNCTIONS(LAST_RESOLVE)
	cu_need(launch_on(stream, 1), "cuLaunchKernel");
	if (shared) {
		const uint32_t slot = (uint32_t)(own() - shared->slots);
		CHECK(share_bit(shared->devices[0].active, slot));
		own()->grant.class = CLASS_BEST_EFFORT;
		own()->grant.mode = MODE_GATE;
		share_bit_clear(shared->devices[0].present, slot);
	}
	in_order();
	if (shared)
		CHECK(!share_any(shared->devices[0].active));
}

static void *expect_another(void *unused)
{
	struct share_slot *s = &shared->slots[OTHER + 1];
	share_bit_set(shared->devices[0].present, OTHER + 1);
	while (!atomic_load_explicit(&stop_peer, memory_order_relaxed)) {
		atomic_store_explicit(&s->work.next_ns, now_ns() + 50000000, memory_order_relaxed);
		usleep(1000);
	}
	return NULL;
}

/* One program's request that never came hides no other's that will. */
static void expected(void)
{
	pthread_t t = 0;
	LAST_FUNCTIONS(LAST_RESOLVE)
	stream = stream_new();
	cu_need(launch_on(stream, 1), "cuLaunchKernel");
	other_comes(false);
	if (shared) {
		shared->slots[OTHER].work.next_ns = 1;
		own()->grant.ahead_ns = 100000000;
		shared->slots[OTHER + 1].work.next_ns = now_ns() + 50000000;
		t = start_thread(expect_another);
		while (!share_bit(shared->devices[0].present, OTHER + 1))
			sched_yield();
	}
	printf("launched %d\n", launch_on(stream, 1));
	if (shared)
		CHECK(own()->counts.waits == 1);
	other_ends(t);
	printf("synchronised %d\n", cuCtxSynchronize());
}

#define DENIED(name)                                                                               \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

/* Against what this program does not do from here on. */
static void shut_in(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		DENIED(openat),
		DENIED(newfstatat),
#ifdef SYS_stat
		DENIED(stat),
		DENIED(readlink),
		DENIED(mkdir),
#else /* arm64 */
		DENIED(readlinkat),
		DENIED(mkdirat),
#endif
		DENIED(kill),
		DENIED(nanosleep),
		DENIED(clock_nanosleep),
		DENIED(sched_yield),
		DENIED(rt_sigprocmask),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof code / sizeof *code, code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		printf("there are no filters here\n");
		exit(0);
	}
}

/* Before its first launch: it is regulated no more. */
static void shut_in_early(void)
{
	cu_prepare();
	stream = stream_new();
	printf("shuts itself in\n");
	fflush(stdout);
	shut_in();
	for (int i = 0; i < 20; i++)
		cu_need(launch_on(stream, 1), "cuLaunchKernel");
	printf("synchronised %d\n", cuCtxSynchronize());
}

/* Between two launches: it goes on to wait, and its slot is left to those who look for the dead. */
static void shut_in_late(void)
{
	cu_prepare();
	stream = stream_new();
	cu_need(launch_on(stream, 1), "cuLaunchKernel");
	other_comes(false);
	cu_need(launch_on(stream, 1), "cuLaunchKernel");
	const pthread_t t = other_stays();
	printf("shuts itself in\n");
	fflush(stdout);
	shut_in();
	for (int i = 0; i < 3; i++)
		cu_need(launch_on(stream, 1), "cuLaunchKernel");
	printf("synchronised %d\n", cuCtxSynchronize());
	other_ends(t);
}

/* case_live.sh runs the following beside real others. */

static void requests(int n)
{
	for (int i = 0; i < n; i++) {
		for (unsigned k = 0; k < 5; k++)
			cu_need(launch_on(stream, 1 + k), "cuLaunchKernel");
		cu_need(cuStreamSynchronize(stream), "cuStreamSynchronize");
	}
}

/* It is stopped in the middle of a request, until somebody has it go on. */
static void stops(void)
{
	stream = stream_new();
	requests(20);
	cu_need(launch_on(stream, 1), "cuLaunchKernel");
	raise(SIGSTOP);
	cu_need(cuStreamSynchronize(stream), "cuStreamSynchronize");
	requests(20);
	printf("went on\n");
}

/* A slot, for as long as its standard input lasts; its own name space says who it is. */
static void holds(void)
{
	char byte;
	stream = stream_new();
	requests(5);
	cu_need(launch_on(stream, 1), "cuLaunchKernel");
	printf("inside\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	cu_need(cuStreamSynchronize(stream), "cuStreamSynchronize");
	requests(5);
	printf("went on\n");
}

enum { CROWD = 300 };

static void be_one_of_many(int said, int go)
{
	char byte = 0;
	cu_prepare();
	stream = stream_new();
	requests(3);
	cu_need(write(said, &byte, 1) != 1 || read(go, &byte, 1) != 0, "the others");
	requests(3);
	_exit(bad > 0);
}

/* So many programs at once, each of which has had requests before the first goes on. */
static void crowd(void)
{
	int said[2], go[2], failed = 0, status;
	char byte;
	cu_need(pipe(said) || pipe(go), "pipe");
	for (int i = 0; i < CROWD; i++)
		if (!fork()) {
			close(go[1]);
			be_one_of_many(said[1], go[0]);
		}
	for (int i = 0; i < CROWD; i++)
		cu_need(read(said[0], &byte, 1) != 1, "read");
	uint32_t live = 0;
	for (uint32_t i = 0; shared && i < SHARE_SLOTS; i++)
		live += shared->slots[i].who.state == SLOT_LIVE;
	CHECK(!shared || live == SHARE_SLOTS);
	close(go[1]);
	while (wait(&status) > 0)
		failed += status != 0;
	printf("%d of %d failed\n", failed, CROWD);
}

static pthread_barrier_t start;
static atomic_int launched;

static void *launch_alone(void *unused)
{
	cu_need(cuCtxSetCurrent(cu_context), "cuCtxSetCurrent");
	cu_need(launch_on(NULL, 1), "cuLaunchKernel");
	atomic_fetch_add(&launched, 1);
	return NULL;
}

static pid_t launchers[8];
static atomic_int launcher_count;

static void *launch_first(void *unused)
{
	launchers[atomic_fetch_add(&launcher_count, 1)] = gettid();
	pthread_barrier_wait(&start);
	return launch_alone(unused);
}

/* Eight threads launch together before any has joined, while a request is active: until that ends,
 * none goes on. */
static void together(void)
{
	pthread_t t[8];
	LAST_FUNCTIONS(LAST_RESOLVE)
	other_begins();
	pthread_barrier_init(&start, NULL, 9);
	for (int i = 0; i < 8; i++)
		t[i] = start_thread(launch_first);
	pthread_barrier_wait(&start);
	if (shared) {
		while (own()->who.state != SLOT_LIVE)
			sched_yield();
		for (int i = 0; i < 8; i++)
			await_wait(launchers[i], &launched);
	}
	CHECK(!shared || !atomic_load(&launched));
	other_leaves();
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	printf("%d launched\n", atomic_load(&launched));
	if (shared)
		CHECK(own()->counts.waits == 8);
}

/* One thread never comes to an end of joining: the other does not wait for it for ever. */
static void unjoined(void)
{
	for (int i = 0; i < 2; i++)
		start_thread(launch_alone);
	while (!atomic_load(&launched))
		usleep(1000);
	printf("one went on\n");
	fflush(stdout);
	_exit(0);
}

static const struct regulated_case cases[] = { { "handler", handler, false },
	{ "jump", jump, false }, { "cancel", cancel, false }, { "exits", exits, true },
	{ "execs", execs, false }, { "became", became, false }, { "moves", moves, false },
	{ "moved", moved, false }, { "clones", clones, false },
	{ "clones_first", clones_first, true }, { "reloads", reloads, true },
	{ "graphs", graphs, false }, { "rests", rests, false }, { "devices", devices, false },
	{ "sizes", sizes, false }, { "opened", opened, false }, { "reclassed", reclassed, false },
	{ "expected", expected, false }, { "shut_in_early", shut_in_early, true },
	{ "shut_in_late", shut_in_late, true }, { "stops", stops, false },
	{ "holds", holds, false }, { "crowd", crowd, true }, { "together", together, false },
	{ "unjoined", unjoined, false }, { NULL, NULL, false } };

int main(int argc, char **argv)
{
	const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = 0;
	return run_case(cases, argc == 2 ? argv[1] : NULL);
}
