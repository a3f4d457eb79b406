/* Writes the view as metrics. */
#include "monitor/prometheus.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static void put_family(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A label's value: of other people's names what is text. */
static void put_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	for (; *value; value++)
		if (*value == '"' || *value == '\\')
			fprintf(out, "\\%c", *value);
		else
			putc(*value >= ' ' && *value <= '~' ? *value : '?', out);
	putc('"', out);
}

static void put_one(FILE *out, const char *name, const char *type, const char *help, double value)
{
	put_family(out, name, type, help);
	fprintf(out, "%s %.17g\n", name, value);
}

enum which { SHARING, WITH_QUOTA, WITH_REQUESTS, RECORDED, ANY };

/* A metric of a struct: where its number lies, and how it becomes one of the metric's unit. */
struct family {
	const char *name, *type, *help;
	uint32_t has; /* enum which, enum gpu_sample_valid */
	uint16_t offset, bytes;
	double times, by;
};

static double number_of(const struct family *f, const void *of)
{
	uint64_t number = 0;
	memcpy(&number, (const char *)of + f->offset, f->bytes);
	return (double)number * f->times / f->by;
}

#define PROGRAM(member)                                                                            \
	offsetof(struct watch_program, member), sizeof(((struct watch_program *)0)->member)
#define GPU(member) offsetof(struct gpu_sample, member), sizeof(((struct gpu_sample *)0)->member)

static const struct family program_families[] = {
	{ "weir_program_device_seconds_total", "counter",
		"Predicted device time of the program's launches.", SHARING, PROGRAM(device_ns), 1,
		1e9 },
	{ "weir_program_requests_total", "counter", "Requests begun.", SHARING, PROGRAM(requests),
		1, 1 },
	{ "weir_program_request_median_seconds", "gauge", "Median duration of all its requests.",
		WITH_REQUESTS, PROGRAM(request_p50_ns), 1, 1e9 },
	{ "weir_program_request_p99_seconds", "gauge", "p99 of the duration of all its requests.",
		WITH_REQUESTS, PROGRAM(request_p99_ns), 1, 1e9 },
	{ "weir_program_waits_total", "counter", "Launches that waited for other programs.",
		SHARING, PROGRAM(waits), 1, 1 },
	{ "weir_program_waiting_seconds_total", "counter", "How long launches waited.", SHARING,
		PROGRAM(waited_ns), 1, 1e9 },
	{ "weir_program_waits_expired_total", "counter", "Waits that ended by --max-wait.", SHARING,
		PROGRAM(expired), 1, 1 },
	{ "weir_program_launches_capped_total", "counter", "Launches sent to part of the SMs.",
		SHARING, PROGRAM(capped), 1, 1 },
	{ "weir_program_memory_used_bytes", "gauge", "Device memory that it has allocated.",
		SHARING, PROGRAM(memory_used), 1, 1 },
	{ "weir_program_memory_quota_bytes", "gauge", "Device memory that its group may have.",
		WITH_QUOTA, PROGRAM(memory_quota), 1, 1 },
	{ "weir_program_memory_refused_total", "counter", "Allocations refused for the quota.",
		WITH_QUOTA, PROGRAM(refused), 1, 1 },
	{ "weir_program_calls_total", "counter", "CUDA calls recorded since the first look.",
		RECORDED, PROGRAM(calls), 1, 1 },
	{ "weir_program_launches_total", "counter",
		"Kernels and graphs launched, for a recorded program since the first look.", ANY,
		PROGRAM(launches), 1, 1 },
};

static bool has(const struct watch_program *p, uint32_t which)
{
	switch (which) {
	case SHARING:
		return p->shares;
	case WITH_QUOTA:
		return p->memory_quota;
	case WITH_REQUESTS:
		return p->request_p99_ns;
	case RECORDED:
		return watch_counts_calls(p);
	default:
		return watch_counts_launches(p);
	}
}

/* The name of a sample, and its labels up to those of its own. */
static void put_program(
	FILE *out, const char *name, const char *suffix, const struct watch_program *p)
{
	char uuid[WATCH_UUID];
	watch_uuid(p->uuid, uuid);
	fprintf(out, "%s%s{pid=\"%u\",", name, suffix, p->pid);
	put_label(out, "program", p->name);
	putc(',', out);
	put_label(out, "uuid", p->shares ? uuid : "");
}

/* Each second octave from a microsecond to two minutes. */
#define FIRST_OCTAVE 9u
#define LAST_OCTAVE  37u

static void put_histogram(FILE *out, const struct watch_program *p, const char *name)
{
	uint64_t sum = 0;
	uint32_t at = 0;
	for (uint32_t octave = FIRST_OCTAVE; octave <= LAST_OCTAVE; octave += 2) {
		for (; at < 4 * octave; at++)
			sum += p->request[at];
		put_program(out, name, "_bucket", p);
		fprintf(out, ",le=\"%.9g\"} %" PRIu64 "\n", (double)share_bucket_ns(at) / 1e9, sum);
	}
	for (; at < SHARE_BUCKETS; at++)
		sum += p->request[at];
	put_program(out, name, "_bucket", p);
	fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\n", sum);
	put_program(out, name, "_sum", p);
	fprintf(out, "} %.17g\n", (double)p->request_ns / 1e9);
	put_program(out, name, "_count", p);
	fprintf(out, "} %" PRIu64 "\n", sum);
}

/* How long requests took, all of them. */
static void put_requests(FILE *out, const struct watch *w, size_t count)
{
	static const char name[] = "weir_program_request_seconds";
	put_family(out, name, "histogram", "Durations of its requests.");
	for (size_t i = 0; i < count; i++)
		if (has(&w->programs.v[i], WITH_REQUESTS))
			put_histogram(out, &w->programs.v[i], name);
}

static void put_ratio(
	FILE *out, const struct watch_program *p, const char *percentile, uint32_t thousandths)
{
	if (!thousandths)
		return;
	put_program(out, "weir_program_request_slowdown_ratio", "", p);
	fprintf(out, ",percentile=\"%s\"} %.17g\n", percentile, thousandths / 1e3);
}

/* As multiples of alone, where the arbiter follows that. */
static void put_slowdown_of(FILE *out, const struct watch *w, size_t count)
{
	put_family(out, "weir_program_request_slowdown_target_ratio", "gauge",
		"Target slowdown of its requests, as a multiple of alone.");
	for (size_t i = 0; i < count; i++) {
		const struct watch_program *p = &w->programs.v[i];
		if (!p->shares || !p->steer.target)
			continue;
		put_program(out, "weir_program_request_slowdown_target_ratio", "", p);
		fprintf(out, "} %.17g\n", p->steer.target / 1e3);
	}
	put_family(out, "weir_program_request_slowdown_ratio", "gauge",
		"Slowdown of its requests beside the current best effort, as a multiple of alone.");
	for (size_t i = 0; i < count; i++) {
		const struct watch_program *p = &w->programs.v[i];
		if (!p->shares || !p->steer.target)
			continue;
		put_ratio(out, p, "50", p->steer.p50);
		put_ratio(out, p, "90", p->steer.p90);
		put_ratio(out, p, "99", p->steer.p99);
	}
}

static void put_programs(FILE *out, const struct watch *w, size_t count)
{
	for (size_t k = 0; k < sizeof program_families / sizeof *program_families; k++) {
		const struct family *f = &program_families[k];
		put_family(out, f->name, f->type, f->help);
		for (size_t i = 0; i < count; i++) {
			const struct watch_program *p = &w->programs.v[i];
			if (!has(p, f->has))
				continue;
			put_program(out, f->name, "", p);
			fprintf(out, "} %.17g\n", number_of(f, p));
		}
	}
	put_family(out, "weir_program_info", "gauge", "A program, always 1.");
	for (size_t i = 0; i < count; i++) {
		const struct watch_program *p = &w->programs.v[i];
		put_program(out, "weir_program_info", "", p);
		fprintf(out, ",class=\"%s\",rule=\"%s\",recorded=\"%s\"} 1\n",
			p->shares ? watch_class_name(p) : "", p->shares ? watch_mode_name(p) : "",
			p->recorded ? "true" : "false");
	}
}

static void put_class(FILE *out, const struct watch *w, const char *name, const char *type,
	const char *help, double (*value)(const struct watch *w, enum share_class class))
{
	put_family(out, name, type, help);
	for (enum share_class c = CLASS_LATENCY; c <= CLASS_BEST_EFFORT; c++)
		fprintf(out, "%s{class=\"%s\"} %.17g\n", name,
			watch_class_name(&(struct watch_program){ .class = c }), value(w, c));
}

#define VALUE(name, expression)                                                                    \
	static double name(const struct watch *w, enum share_class class)                          \
	{                                                                                          \
		return (double)(expression);                                                       \
	}
VALUE(device_of, w->classes[class].device_s)
VALUE(waiting_of, w->classes[class].waiting_s)
VALUE(requests_of, w->classes[class].requests)
#undef VALUE

static double programs_of(const struct watch *w, enum share_class class)
{
	double n = 0;
	for (size_t i = 0; i < w->programs.n; i++)
		n += w->programs.v[i].shares && w->programs.v[i].class == class;
	return n;
}

static void put_classes(FILE *out, const struct watch *w)
{
	put_class(
		out, w, "weir_class_programs", "gauge", "Programs that share a GPU.", programs_of);
	put_class(out, w, "weir_class_device_seconds_total", "counter",
		"Predicted device time of the programs of a class, while they were watched.",
		device_of);
	put_class(out, w, "weir_class_waiting_seconds_total", "counter",
		"Time that their launches waited, while they were watched.", waiting_of);
	put_class(out, w, "weir_class_requests_total", "counter",
		"Requests begun, while they were watched.", requests_of);
}

static const struct family gpu_families[] = {
	{ "weir_gpu_utilization_ratio", "gauge", "Time in which a kernel ran, as NVML has it.",
		SAMPLE_BUSY, GPU(busy_pct), 1, 100 },
	{ "weir_gpu_memory_utilization_ratio", "gauge",
		"Time in which memory was read or written, as NVML has it.", SAMPLE_HAS_BUSY,
		GPU(memory_busy_pct), 1, 100 },
	{ "weir_gpu_memory_used_bytes", "gauge", "Memory in use by all programs.",
		SAMPLE_HAS_MEMORY, GPU(memory_used), 1, 1 },
	{ "weir_gpu_memory_size_bytes", "gauge", "Memory that the GPU has.", SAMPLE_HAS_MEMORY,
		GPU(memory_total), 1, 1 },
	{ "weir_gpu_power_watts", "gauge", "Power.", SAMPLE_HAS_POWER, GPU(power_mw), 1, 1e3 },
	{ "weir_gpu_power_limit_watts", "gauge", "Power that it may take.", SAMPLE_HAS_POWER_LIMIT,
		GPU(power_limit_mw), 1, 1e3 },
	{ "weir_gpu_energy_joules_total", "counter", "Energy since the driver was loaded.",
		SAMPLE_HAS_ENERGY, GPU(energy_mj), 1, 1e3 },
	{ "weir_gpu_temperature_celsius", "gauge", "Temperature of the GPU.", SAMPLE_HAS_CELSIUS,
		GPU(celsius), 1, 1 },
	{ "weir_gpu_sm_clock_hertz", "gauge", "Clock of the SMs.", SAMPLE_HAS_SM_CLOCK, GPU(sm_mhz),
		1e6, 1 },
	{ "weir_gpu_sm_clock_max_hertz", "gauge", "Highest clock of the SMs.",
		SAMPLE_HAS_SM_CLOCK_MOST, GPU(sm_mhz_most), 1e6, 1 },
	{ "weir_gpu_memory_clock_hertz", "gauge", "Clock of the memory.", SAMPLE_HAS_MEMORY_CLOCK,
		GPU(memory_mhz), 1e6, 1 },
	{ "weir_gpu_pcie_transmit_bytes_per_second", "gauge", "Sent over PCIe in the last 20 ms.",
		SAMPLE_HAS_PCIE, GPU(pcie_tx), 1, 1 },
	{ "weir_gpu_pcie_receive_bytes_per_second", "gauge",
		"Received over PCIe in the last 20 ms.", SAMPLE_HAS_PCIE, GPU(pcie_rx), 1, 1 },
	{ "weir_gpu_nvlink_transmit_bytes_total", "counter", "Sent over all NVLinks.",
		SAMPLE_HAS_NVLINK, GPU(nvlink_tx), 1, 1 },
	{ "weir_gpu_nvlink_receive_bytes_total", "counter", "Received over all NVLinks.",
		SAMPLE_HAS_NVLINK, GPU(nvlink_rx), 1, 1 },
	{ "weir_gpu_ecc_corrected_errors_total", "counter",
		"Memory errors corrected since the driver was loaded.", SAMPLE_HAS_ECC,
		GPU(ecc_corrected), 1, 1 },
	{ "weir_gpu_ecc_uncorrected_errors_total", "counter",
		"Memory errors not corrected since the driver was loaded.", SAMPLE_HAS_ECC,
		GPU(ecc_uncorrected), 1, 1 },
};

static void put_gpu_families(FILE *out, const struct watch *w)
{
	for (size_t k = 0; k < sizeof gpu_families / sizeof *gpu_families; k++) {
		const struct family *f = &gpu_families[k];
		put_family(out, f->name, f->type, f->help);
		for (size_t i = 0; i < w->gpus.n; i++) {
			const struct gpu_sample *s = &w->gpus.v[i].sample;
			if (s->valid & f->has)
				fprintf(out, "%s{gpu=\"%u\"} %.17g\n", f->name, s->device,
					number_of(f, s));
		}
	}
}

static void put_reasons(FILE *out, const struct watch *w)
{
	static const char *const names[THROTTLE_REASONS] = { "idle", "application_clocks",
		"power_cap", "hardware", "sync_boost", "thermal", "hardware_thermal", "power_brake",
		"display_clocks" };
	put_family(out, "weir_gpu_clock_limited", "gauge",
		"Whether the clock is held down for this reason.");
	for (size_t i = 0; i < w->gpus.n; i++) {
		const struct gpu_sample *s = &w->gpus.v[i].sample;
		for (unsigned k = 0; k < THROTTLE_REASONS && s->valid & SAMPLE_HAS_REASONS; k++)
			fprintf(out, "weir_gpu_clock_limited{gpu=\"%u\",reason=\"%s\"} %u\n",
				s->device, names[k], s->reasons >> k & 1);
	}
}

static void put_gpus(FILE *out, const struct watch *w)
{
	char uuid[WATCH_UUID];
	put_family(out, "weir_gpu_info", "gauge", "A GPU, always 1.");
	for (size_t i = 0; i < w->gpus.n; i++) {
		watch_uuid(w->gpus.v[i].sample.uuid, uuid);
		fprintf(out, "weir_gpu_info{gpu=\"%u\",", w->gpus.v[i].sample.device);
		put_label(out, "name", w->gpus.v[i].name);
		fprintf(out, ",uuid=\"%s\"} 1\n", uuid);
	}
	put_gpu_families(out, w);
	put_reasons(out, w);
}

#define NAME_SHOWN 80 /* of a kernel's name; all that is known is in GET /v1/regressions */

static void put_slowdown(FILE *out, const struct regress_series *s)
{
	char name[NAME_SHOWN + 1], uuid[WATCH_UUID];
	snprintf(name, sizeof name, "%.*s", NAME_SHOWN, s->what.name);
	watch_uuid(s->what.uuid, uuid);
	fprintf(out, "weir_regression_slowdown_ratio{id=\"%016" PRIx64 "\",kind=\"%s\",", s->key,
		feed_kind_name(s));
	put_label(out, "program", s->what.program);
	putc(',', out);
	put_label(out, "name", name);
	fprintf(out, ",uuid=\"%s\"} %.6g\n", uuid,
		exp(s->state == REGRESS_SLOWER ? s->effect : s->after - s->before));
}

static void put_slowdowns(FILE *out, const struct watch *w)
{
	const struct regress_series *firing[PROMETHEUS_REGRESSIONS];
	const struct regress *r = w->feed.regress;
	if (!r)
		return;
	const struct regress_counts c = regress_counts(r);
	const uint32_t all = regress_firing(r, w->ns, PROMETHEUS_REGRESSIONS, firing);
	put_one(out, "weir_regression_series", "gauge",
		"Kernels and classes of requests that are watched for slowdowns.",
		regress_count(r));
	put_one(out, "weir_regression_left_out_total", "counter",
		"Durations without room for their series.", (double)c.left_out);
	put_one(out, "weir_regression_durations_total", "counter", "Durations looked at.",
		(double)c.values);
	put_one(out, "weir_regressions_raised_total", "counter", "Alarms raised.",
		(double)c.raised);
	put_one(out, "weir_regressions_firing", "gauge", "Series with a lasting slowdown.", all);
	put_family(out, "weir_regression_slowdown_ratio", "gauge",
		"The largest lasting slowdown, as a multiple of before.");
	for (uint32_t i = 0; i < all && i < PROMETHEUS_REGRESSIONS; i++)
		put_slowdown(out, firing[i]);
}

static double lost_calls(const struct watch *w)
{
	double lost = 0;
	for (size_t i = 0; i < w->recordings.all.n; i++)
		lost += (double)load_relaxed(&recording_header(w->recordings.all.v[i])->lost);
	return lost;
}

void prometheus_put(FILE *out, const struct watch *w, const char *version)
{
	const size_t all = w->programs.n;
	const size_t count = MIN(all, PROMETHEUS_PROGRAMS);
	put_family(out, "weir_build_info", "gauge", "Version of Weir, always 1.");
	fprintf(out, "weir_build_info{version=\"%s\"} 1\n", version);
	put_one(out, "weir_sharing_arbiter", "gauge", "Whether an arbiter runs.", w->has_arbiter);
	put_one(out, "weir_sharing_gates_open", "gauge", "Whether all gates are open.", w->open);
	put_family(out, "weir_sharing_policy_info", "gauge", "The policy, always 1.");
	if (*w->policy)
		fprintf(out, "weir_sharing_policy_info{policy=\"%s\"} 1\n", w->policy);
	put_one(out, "weir_recordings", "gauge", "Recordings that are being written.",
		(double)w->recordings.all.n);
	put_one(out, "weir_recordings_lost_calls", "gauge",
		"Calls that recordings lost because there was no room.", lost_calls(w));
	put_one(out, "weir_programs_left_out", "gauge",
		"Programs without metrics, because there are too many.", (double)(all - count));
	put_one(out, "weir_monitor_look_seconds", "gauge", "Duration of the last look.",
		(double)w->took_ns / 1e9);
	put_one(out, "weir_monitor_looks_total", "counter", "Number of looks.", (double)w->looks);
	put_classes(out, w);
	put_programs(out, w, count);
	put_requests(out, w, count);
	put_slowdown_of(out, w, count);
	put_gpus(out, w);
	put_slowdowns(out, w);
}
