/*
 * How many kernels a second the law of a shared GPU (src/law) plays: what a replay of recordings,
 * or the simulated driver, can expect of it.  Each row is a shape of kernels, by how many clients,
 * shared how.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "law/law.h"

enum { KERNELS = 20000, AHEAD = 64 };

struct row {
	const char *name;
	enum law_sharing sharing;
	unsigned clients;
	uint64_t blocks, alone_ns;
};

static const struct row rows[] = {
	{ "64 blocks, alone", LAW_SLICES, 1, 64, 10000 },
	{ "one wave of 264 blocks, alone", LAW_SLICES, 1, 264, 566000 },
	{ "5 280 blocks, alone", LAW_SLICES, 1, 5280, 491000 },
	{ "a million blocks, alone", LAW_SLICES, 1, 1000000, 491000 },
	{ "one wave, 2 clients in slices", LAW_SLICES, 2, 264, 566000 },
	{ "one wave, 2 clients under MPS", LAW_MPS, 2, 264, 566000 },
	{ "64 blocks, 4 clients under MPS", LAW_MPS, 4, 64, 10000 },
	{ "5 280 blocks, 4 clients under MPS", LAW_MPS, 4, 5280, 491000 },
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void submit(struct law *law, const struct row *r, unsigned n)
{
	const struct law_work w = {
		.kind = LAW_KERNEL,
		.client = n % r->clients,
		.stream = 1,
		.lead_ns = 2000,
		.alone_ns = r->alone_ns,
		.blocks = r->blocks,
		.warps = 8,
		.per_sm = 8,
	};
	uint64_t id;

	if (law_submit(law, &w, &id))
		abort();
}

static double play(struct law *law, const struct row *r)
{
	struct law_device device = LAW_H200;
	unsigned sent = 0, ended = 0;
	struct law_done done;

	device.sharing = r->sharing;
	law_reset(law, &device);
	for (unsigned c = 0; c < r->clients; c++)
		law_client_open(law, c, 0, 0);
	const double start = now_s();
	while (ended < KERNELS) {
		while (sent < KERNELS && sent - ended < AHEAD)
			submit(law, r, sent++);
		law_advance(law, law_next(law));
		for (unsigned c = 0; c < r->clients; c++)
			while (law_pop(law, c, &done))
				ended++;
	}
	return KERNELS / (now_s() - start);
}

int main(void)
{
	struct law *law = malloc(law_size());

	for (size_t i = 0; law && i < sizeof rows / sizeof rows[0]; i++) {
		double best = 0;

		for (int run = 0; run < 3; run++) {
			const double rate = play(law, &rows[i]);

			best = rate > best ? rate : best;
		}
		printf("%-36s %9.0f kernels/s\n", rows[i].name, best);
	}
	free(law);
	return 0;
}
