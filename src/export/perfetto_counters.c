/* The state of the GPUs (model/gpu_state.h) as counters in Perfetto's format, a track for each. */
#include "export/export.h"
#include "export/export_perfetto.h"
#include "export/protobuf.h"
#include "model/gpu_state.h"

static void put_track(
	struct proto *p, uint32_t number, unsigned gpu, const struct gpu_metric_row *m)
{
	char name[80];
	snprintf(name, sizeof name, "GPU %u %s", gpu, m->name);
	perfetto_packet(p);
	perfetto_track(p, number, 0);
	proto_str(p, TRACK_NAME, name);
	proto_open(p, TRACK_COUNTER);
	proto_str(p, COUNTER_UNIT, m->unit);
	proto_close_all(p);
}

static void put_value(struct proto *p, uint32_t track, uint64_t ns, double value)
{
	perfetto_packet(p);
	perfetto_event(p, ns, TYPE_COUNTER, track);
	proto_double(p, EVENT_COUNTER, value);
	proto_close_all(p);
}

static void put_metric(struct proto *p, uint32_t track, const struct gpu_states *all,
	const struct gpu_state *g, enum gpu_metric m)
{
	const struct gpu_sample *s = all->samples.v + g->first;
	double value;
	put_track(p, track, g->device, &gpu_metrics[m]);
	for (size_t i = 0; i < g->count; i++)
		if (gpu_metric_of(&s[i], i ? &s[i - 1] : NULL, m, &value))
			put_value(p, track, s[i].ns, value);
}

int perfetto_counters(struct export *x, struct proto *p, uint32_t tracks)
{
	struct gpu_states all;
	const int e = gpu_states_load(x->trace, x->meta, &all);
	if (e)
		return e;
	for (size_t i = 0; i < all.gpus.n; i++)
		for (enum gpu_metric m = 0; m < GPU_METRICS; m++)
			if (all.gpus.v[i].range[m].count) {
				put_metric(p, ++tracks, &all, &all.gpus.v[i], m);
				proto_write(p, x->out);
			}
	gpu_states_fini(&all);
	return 0;
}
