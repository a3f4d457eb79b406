/* Rates are found by halving: the share that is in time falls with the rate. */
#include "workload.h"

const struct workload workloads[2] = {
	{ "A", { { 1.0, .15, 25, .35 }, { 2.5, .55, 60, .15 }, { .4, .06, 10, .5 } } },
	{ "B", { { 3.0, .5, 120, .15 }, { .3, .02, 10, .6 }, { 1.5, .3, 40, .25 } } },
};

void workload_play(const struct workload *w, const struct setting *s, double rate,
	struct simulation with, struct simulated ret[WORKLOAD_MODELS + 1])
{
	double typical[WORKLOAD_MODELS][WORKLOAD_ROWS + 1];
	struct simulated_model models[WORKLOAD_MODELS];
	for (int i = 0; i < WORKLOAD_MODELS; i++) {
		const uint64_t deadline_ns = (uint64_t)(w->model[i].deadline_ms * 1e6);
		for (int rows = 1; rows <= WORKLOAD_ROWS; rows++)
			typical[i][rows] =
				(w->model[i].alpha_ms + w->model[i].beta_ms * rows) * 1e6;
		models[i] = (struct simulated_model){
			.config = { .max_rows = s->max_rows,
				.max_queue = 100000,
				.max_delay_ns = (uint64_t)(s->delay_ms * 1e6) },
			.deadline_ns = deadline_ns,
			.timeout_ns = s->timeout ? deadline_ns : BATCH_NEVER,
			.rate = rate * w->model[i].share,
			.typical_ns = typical[i],
			.deviation = .03,
		};
	}
	with.policy = s->policy;
	with.models = models;
	with.model_count = WORKLOAD_MODELS;
	with.hiccup_share = .002;
	with.hiccup_ns = 2000000;
	simulate(&with, ret);
}

double workload_rate(const struct workload *w, const struct setting *s, double share,
	double seconds, uint64_t seed)
{
	double low = 200, high = 6000;
	while (high - low > 10) {
		const double middle = (low + high) / 2;
		struct simulated ret[WORKLOAD_MODELS + 1];
		workload_play(
			w, s, middle, (struct simulation){ .seconds = seconds, .seed = seed }, ret);
		if (simulated_goodput(&ret[WORKLOAD_MODELS]) >= share)
			low = middle;
		else
			high = middle;
		simulated_fini(ret, WORKLOAD_MODELS);
	}
	return low;
}
