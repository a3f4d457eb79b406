/*
 * The cost of one NVTX range, a push and a pop together.
 *
 *	weir record -o t.weir -- bench-range [-b BATCH] [-n ROUNDS]
 *
 * Prints the median of the rounds in nanoseconds a range, NVTX's own call through a pointer
 * included, of
 *
 *	clocks    two readings of the time-stamp counter, which is the least that a range can cost
 *	name      nvtxRangePushA
 *	domain    nvtxDomainRangePushEx with a registered string
 *	payload   the same with a number, which is another each time
 *	operator  what PyTorch's observer says of a matrix product, another each time
 *
 * Without Weir nobody listens, and all but the first are the cost of a test for NULL.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"
#include "nvtx.h"

enum way { CLOCKS, NAME, DOMAIN, PAYLOAD, OPERATOR, WAYS };
static const char *const names[] = { "clocks", "name", "domain", "payload", "operator" };

static int batch = 2000, rounds = 300;
static void *domain, *text;
static char (*messages)[128];

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t seen; /* so that the readings are used */

static void one(enum way way, int i)
{
	struct nvtx_event e = { .version = 3,
		.size = 48,
		.message_type = 3,
		.message = text,
		.payload_type = way == PAYLOAD,
		.payload.u64 = (uint64_t)i };
	switch (way) {
	case CLOCKS:
		seen -= cpu_ticks();
		seen += cpu_ticks();
		return;
	case NAME:
		NVTX(push, "forward");
		break;
	case OPERATOR:
		NVTX(push, messages[i]);
		break;
	default:
		NVTX(domain_push, domain, &e);
		NVTX(domain_pop, domain);
		return;
	}
	NVTX(pop);
}

static int ascending(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static double median(enum way way)
{
	uint64_t *ns = calloc((size_t)rounds, sizeof *ns);
	for (int r = 0; r < rounds; r++) {
		const uint64_t begun = now_ns();
		for (int i = 0; i < batch; i++)
			one(way, i);
		ns[r] = now_ns() - begun;
	}
	qsort(ns, (size_t)rounds, sizeof *ns, ascending);
	const double middle = (double)ns[rounds / 2] / batch;
	free(ns);
	return middle;
}

int main(int argc, char **argv)
{
	int option;
	while ((option = getopt(argc, argv, "b:n:")) != -1) {
		int *to = option == 'b' ? &batch : option == 'n' ? &rounds : NULL;
		if (!to || (*to = (int)strtol(optarg, NULL, 10)) < 1)
			return 2;
	}
	if (!nvtx_load())
		printf("nobody listens\n");
	domain = NVTX(domain, "bench");
	text = NVTX(register, domain, "forward");
	messages = calloc((size_t)batch, sizeof *messages);
	for (int i = 0; i < batch; i++)
		snprintf(messages[i], sizeof *messages,
			"aten::mm, seq = %d, op_id = %d, sizes = [[1024, 512], [512, 2048]], "
			"input_op_ids = [(%d,0), (0,-1)]",
			i, 3 * i, i);
	for (int way = 0; way < WAYS; way++)
		printf("%-8s %7.1f ns\n", names[way], median((enum way)way));
	return 0;
}
