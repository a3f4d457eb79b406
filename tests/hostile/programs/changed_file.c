/*
 * Somebody writes to the trace while it is being recorded.
 *
 *	changed_file SEED CHANGES
 *
 * A forked process of the same user changes random words of the file that WEIR names: of its
 * header, of chunks' headers, of what is in them; most for a moment only, or the recording would
 * end with the first.  Meanwhile the program records in many threads, some of which come and go,
 * with ranges in ranges and forked children.  Without WEIR it does the same, and nobody changes
 * anything.
 */
#include "cu.h"
#include "nvtx.h"

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define GRAIN   65536u
#define THREADS 3
#define ROUNDS  40

static uint64_t state;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t below(uint64_t n)
{
	return n ? draw() % n : 0;
}

/* A word of the file, on 4 bytes. */
static uint64_t some_place(uint64_t bytes)
{
	const uint64_t chunk = 1 + below(bytes / GRAIN - 1);
	switch (below(4)) {
	case 0: /* the header */
		return 4 * below(128);
	case 1: /* a chunk's */
		return GRAIN * chunk + 4 * below(64);
	case 2: /* what its chunk begins with */
		return GRAIN * chunk + 4 * below(1024);
	default:
		return 4 * below(bytes / 4 - 2);
	}
}

static uint64_t some_value(int fd, uint64_t bytes, uint64_t was)
{
	uint64_t other = 0;
	switch (below(7)) {
	case 0:
		return draw();
	case 1:
		return below(17);
	case 2:
		return was + below(5) - 2;
	case 3:
		return was ^ 1ull << below(64);
	case 4:
		return GRAIN * below(2 * bytes / GRAIN);
	case 5:
		return ~0ull >> below(64);
	default: /* another word: an address, say */
		pread(fd, &other, sizeof other, (off_t)some_place(bytes));
		return other;
	}
}

static void change(int fd, uint64_t bytes)
{
	const off_t at = (off_t)some_place(bytes);
	const size_t size = below(2) ? 8 : 4;
	uint64_t was = 0;
	if (pread(fd, &was, sizeof was, at) != sizeof was)
		return;
	const uint64_t now = some_value(fd, bytes, was);
	pwrite(fd, &now, size, at);
	if (at < GRAIN || below(4)) {
		for (uint64_t i = below(4); i; i--)
			sched_yield();
		pwrite(fd, &was, size, at);
	}
}

static void change_all(const char *path, long changes)
{
	struct stat st = { 0 };
	int fd = -1;
	for (int i = 0; i < 20000 && st.st_size < 3 * (off_t)GRAIN; i++) {
		fd = fd < 0 ? open(path, O_RDWR | O_CLOEXEC) : fd;
		if (fd >= 0)
			fstat(fd, &st);
		usleep(500);
	}
	for (long i = 0; st.st_size >= 3 * (off_t)GRAIN && i < changes; i++) {
		if (i % 256 == 0)
			fstat(fd, &st);
		change(fd, st.st_size < 1 << 30 ? (uint64_t)st.st_size : 1 << 30);
	}
	_exit(0);
}

static pid_t start_changer(uint64_t seed, long changes)
{
	const char *config = getenv("WEIR"), *path = config ? strstr(config, "record:") : NULL;
	if (!path)
		return 0;
	const pid_t child = fork();
	if (!child) {
		state = seed * 0x9e3779b97f4a7c15u | 1;
		change_all(path + strlen("record:"), changes);
	}
	return child;
}

static atomic_bool over;
static atomic_int failed;
static void *domain;

static void work(int i)
{
	const int depth = 1 + i % 9;
	const uint64_t id = NVTX(start, "span");
	for (int k = 0; k < depth; k++) {
		NVTX(push, k % 2 ? "odd" : "even");
		if (k % 3 == 0)
			NVTX(domain_push, domain, NVTX_EVENT(.message_type = 1, .message = "mine"));
		cu_launch(20);
	}
	for (int k = depth; k-- > 0;) {
		if (k % 2 == 0)
			NVTX(pop);
		if (k % 3 == 0)
			NVTX(domain_pop, domain);
		if (k % 2)
			NVTX(pop);
	}
	NVTX_VOID(end, id);
	NVTX_VOID(mark, "mark");
	failed += cu_launch(100);
}

static void *worker(void *unused)
{
	cuCtxSetCurrent(cu_context);
	for (int i = 0; i < ROUNDS || !over; i++)
		work(i);
	return NULL;
}

static void *visitor(void *unused)
{
	cuCtxSetCurrent(cu_context);
	for (int i = 0; i < 3; i++)
		work(i);
	return NULL;
}

static void fork_once(void)
{
	int status = -1;
	const pid_t child = fork();
	if (!child) {
		cu_launch(10);
		NVTX(push, "in the child");
		NVTX(pop);
		_exit(3);
	}
	waitpid(child, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
		printf("a child ended with %#x\n", (unsigned)status);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS], other;
	if (argc < 3)
		return 2;
	const pid_t changer = start_changer(strtoull(argv[1], NULL, 10), strtol(argv[2], NULL, 10));
	nvtx_load();
	cu_start();
	domain = NVTX(domain, "domain");
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, worker, NULL);
	for (int i = 0; i < ROUNDS || !over; i++) {
		pthread_create(&other, NULL, visitor, NULL);
		if (i % 4 == 0)
			fork_once();
		pthread_join(other, NULL);
		if (!changer || waitpid(changer, NULL, WNOHANG) == changer)
			over = true;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d failed\n", (int)failed);
	return 5;
}
