/* Ranges as badly behaved programs make them: `nvtx HOW`. */
#include "cu.h"
#include "nvtx.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

/*
 * Only where somebody listens can the trace hold ranges.  A range alone in one of its own name is
 * no second one to a report, so names take turns below.
 */
static void ranges(const char *name, long exactly)
{
	char text[64];

	if (!nvtx_push)
		return;
	snprintf(text, sizeof text, "range:%s", name);
	counts(text, exactly);
}

static void nested(int depth)
{
	NVTX(push, depth % 2 ? "odd" : "even");
	if (depth > 1)
		nested(depth - 1);
	NVTX(pop);
}

static void balanced(void)
{
	void *domain = NVTX(domain, "mine"), *text = NVTX(register, domain, "registered");

	NVTX(push, "plain");
	NVTX(push_wide, L"wide\u00e9\U0001f600");
	NVTX(push_event,
		NVTX_EVENT(.message_type = 1, .message = "event", .category = 7, .color_type = 1,
			.color = 0xff00ff00, .payload_type = 3, .payload.real = -1.5));
	NVTX(domain_push, domain, NVTX_EVENT(.message_type = 3, .message = text));
	NVTX_VOID(mark, "mark");
	cu_launch_once();
	for (int i = 0; i < 4; i++)
		i == 0 ? NVTX(domain_pop, domain) : NVTX(pop);
	ranges("plain", 1);
	ranges("wide\u00e9\U0001f600", 1);
	ranges("event", 1);
	ranges("registered", 1);
}

/* More pops than pushes, pops of domains that nobody pushed, pushes that nobody pops. */
static void unbalanced(void)
{
	void *domain = NVTX(domain, "mine");

	for (int i = 0; i < 100; i++)
		NVTX(pop);
	for (int i = 0; i < 1000; i++) {
		NVTX(push, "outer");
		NVTX(domain_push, domain, NVTX_EVENT(.message_type = 1, .message = "crossing"));
		NVTX(domain_pop, NULL);
		NVTX(domain_pop, domain);
		NVTX(domain_pop, domain);
		NVTX(pop);
	}
	for (int i = 0; i < 10; i++)
		NVTX(push, i % 2 ? "left" : "right");
	for (int i = 0; i < 300000; i++) { /* a program that pops what it did not push */
		NVTX(push, i % 2 ? "leak" : "leaked");
		NVTX(domain_pop, domain);
	}
	ranges("outer", 1000);
	ranges("crossing", 1000);
	ranges("leak", 150000);
	ranges("left", 5);
	ranges("right", 5);
}

static void messages(void)
{
	static char huge[1 << 20];

	memset(huge, 'x', sizeof huge - 1);
	for (int i = 0; i < 3; i++) {
		NVTX(push, huge);
		NVTX(push, NULL);
		NVTX(push, "\xff\xfe\x80 no UTF-8\n\x01");
		NVTX(push, "");
		NVTX(push, ", op_id = 99999999999999999999999, sizes = [[");
		NVTX(push,
			"aten::mm, seq = 4, op_id = 9, sizes = [[8, 512], []], input_op_ids = [(1,0)]");
		NVTX(push_wide, NULL);
		NVTX(push_event, NULL);
		NVTX(push_event, NVTX_EVENT(.message_type = 3, .message = (void *)0xdead0));
		NVTX(push_event, NVTX_EVENT(.message_type = 77, .message = huge));
		NVTX(domain_push, (void *)&nvtx_push,
			NVTX_EVENT(.message_type = 1, .message = "strange"));
		NVTX_VOID(mark, NULL);
		NVTX_VOID(end, NVTX(start, NULL));
		for (int k = 0; k < 11; k++)
			NVTX(pop);
	}
	for (uint64_t id = 1; id; id <<= 1) {
		NVTX_VOID(end, id);
		NVTX_VOID(end, id - 1);
		NVTX_VOID(end, ~id);
	}
	ranges("aten::mm", 3);
	ranges("strange", 3);
}

/* Every name is another one: more than any table holds. */
static void names(void)
{
	char text[32];

	for (int i = 0; i < 100000; i++) {
		snprintf(text, sizeof text, "name%d", i);
		NVTX(push, text);
		NVTX(pop);
	}
	NVTX(push, "last");
	NVTX(pop);
	ranges("name7", 1);
	ranges("name99999", 1);
	ranges("last", 1);
}

static void many(void)
{
	NVTX(push, "outer");
	for (int i = 0; i < 500000; i++) {
		NVTX(push, "one");
		NVTX(push, "two");
		NVTX(pop);
		NVTX(pop);
	}
	NVTX(push, "last");
	NVTX(pop);
	NVTX(pop);
}

/* Every range has a number of its own, and the last kernel comes after all of them. */
static void payloads(void)
{
	void *module;

	for (int i = 0; i < 200000; i++) {
		NVTX(push_event, NVTX_EVENT(.message_type = 1, .message = "step", .payload_type = 1,
					 .payload.u64 = (uint64_t)i));
		NVTX(pop);
	}
	cu_need(cuModuleLoadData(&module, cu_image), "cuModuleLoadData");
	cu_need(cuModuleGetFunction(&cu_kernel, module, "nothing"), "cuModuleGetFunction");
	cu_launch_once();
}

static off_t trace_bytes(void)
{
	const char *config = getenv("WEIR"), *path = config ? strstr(config, "record:") : NULL;
	struct stat st;

	return path && !stat(path + strlen("record:"), &st) ? st.st_size : 0;
}

/* The same, waiting for whoever drains the trace as often as it has grown. */
static void paced(void)
{
	off_t before = trace_bytes();

	NVTX(push, "outer");
	for (int i = 0; i < 500000; i++) {
		NVTX(push, "one");
		NVTX(push, "two");
		NVTX(pop);
		NVTX(pop);
		if (i % 500)
			continue;
		const off_t now = trace_bytes();
		if (now > before)
			usleep(20000);
		before = now;
	}
	NVTX(pop);
}

static uint64_t started[200];

static void *end_them(void *unused)
{
	for (int i = 0; i < 200; i++)
		NVTX_VOID(end, started[i]);
	for (int i = 0; i < 500; i++) {
		NVTX(push, "thread");
		NVTX(pop);
		NVTX(pop);
	}
	NVTX(push, "open");
	return NULL;
}

/* Pushed here, popped there; started here, ended there. */
static void threads(void)
{
	pthread_t all[8];

	NVTX(push, "main");
	for (int i = 0; i < 200; i++)
		started[i] = NVTX(start, "span");
	for (int i = 0; i < 8; i++)
		pthread_create(&all[i], NULL, end_them, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(all[i], NULL);
	NVTX(pop);
	ranges("main", 1);
	ranges("thread", 4000);
	ranges("open", 8);
}

static void fork_inside(void)
{
	void *domain = NVTX(domain, "mine"), *text = NVTX(register, domain, "registered");

	NVTX(push, "before");
	NVTX(domain_push, domain, NVTX_EVENT(.message_type = 3, .message = text));
	const pid_t child = fork();
	if (!child) {
		NVTX(domain_pop, domain);
		NVTX(push, "child");
		NVTX(domain_push, domain, NVTX_EVENT(.message_type = 3, .message = text));
		for (int i = 0; i < 4; i++)
			i ? NVTX(pop) : NVTX(domain_pop, domain);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	NVTX(domain_pop, domain);
	NVTX(pop);
	ranges("before", 1);
	ranges("child", 1);
	ranges("registered", 2);
}

static void killed(void)
{
	for (int i = 0; i < 3000; i++) {
		NVTX(push, "done");
		NVTX(pop);
	}
	NVTX(push, "outer");
	NVTX(push, "inner");
	NVTX(start, "span");
	ranges("done", 3000);
	ranges("outer", 1);
	ranges("inner", 1);
	kill(getpid(), SIGKILL);
}

static atomic_long handled; /* handlers run inside each other */
static atomic_int done;

static void handler(int signal)
{
	NVTX(push, "handler");
	NVTX(push, "inside");
	NVTX(pop);
	NVTX(pop);
	handled++;
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_NODEFER };
	struct itimerval fast = { { 0, 100 }, { 0, 100 } }, off = { { 0, 0 }, { 0, 0 } };
	long pushed = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &fast, NULL);
	for (; handled < 1500; pushed++) {
		NVTX(push, "storm");
		NVTX(pop);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	ranges("storm", pushed);
	ranges("inside", handled); /* `handler` may be alone in one that it interrupted */
}

static void fill_chunks(int signal)
{
	for (int i = 0; i < 1500; i++) {
		NVTX(push, "handler");
		NVTX(pop);
	}
	handled++;
}

static void *interrupt(void *main_thread)
{
	for (long n = 0; n < 40; n++) {
		const long before = handled;
		pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
		while (handled == before)
			sched_yield();
	}
	done = 1;
	return NULL;
}

/* Handlers that go through whole chunks, between any two lines of a push that stays open. */
static void turnover(void)
{
	struct sigaction action = { .sa_handler = fill_chunks };
	pthread_t self = pthread_self(), other;
	long pushed = 0;

	sigaction(SIGUSR1, &action, NULL);
	NVTX(push, "outermost");
	pthread_create(&other, NULL, interrupt, &self);
	for (; !done; pushed++) {
		for (int i = 0; i < 40; i++)
			NVTX(push, "held");
		for (int i = 0; i < 40; i++)
			NVTX(pop);
	}
	pthread_join(other, NULL);
	NVTX(pop);
	ranges("outermost", 1);
}

static void jump(void)
{
	jmp_buf out;

	for (volatile int i = 0; i < 100; i++) {
		NVTX(push, "around");
		if (!setjmp(out)) {
			NVTX(push, "jumped");
			longjmp(out, 1);
		}
		NVTX(pop);
		NVTX(pop);
	}
	ranges("around", 100);
	ranges("jumped", 100);
}

static void deep(void)
{
	nested(10000);
	ranges("odd", 5000);
	ranges("even", 5000);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = { { "balanced", balanced }, { "unbalanced", unbalanced },
		{ "messages", messages }, { "names", names }, { "many", many },
		{ "payloads", payloads }, { "paced", paced }, { "threads", threads },
		{ "fork", fork_inside }, { "killed", killed }, { "signals", signals },
		{ "turnover", turnover }, { "jump", jump }, { "deep", deep } };
	const char *how = argc > 1 ? argv[1] : "balanced";

	setvbuf(stdout, NULL, _IONBF, 0);
	nvtx_load();
	cu_start();
	cu_launch_once();
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (!strcmp(ways[i].name, how))
			ways[i].run();
	printf("%s\n", how);
	return 0;
}
