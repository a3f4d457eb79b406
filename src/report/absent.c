/* See absent.h. */
#include "report/absent.h"

#include <string.h>

#include "report/provenance.h"

#include "base/banned.h"

/* What is in a section, and so what it takes to have it. */
enum made_of {
	OF_CALLS,
	OF_LAUNCHES,
	OF_FAILURES,
	OF_EVENTS,
	OF_COPIES,
	OF_GPU,
	OF_NCCL,
	OF_RANGES,
	OF_RANGE_KERNELS,
	OF_OPERATORS,
	OF_STEPS,
	OF_ALLOCATIONS,
	OF_IDLE,
	OF_NVML,
	OF_PREDICTION,
	OF_STACKS,
	OF_WARNINGS,
	OF_HINTS
};

static const struct {
	const char *section;
	enum made_of of;
} sections[] = {
	{ "calls", OF_CALLS },
	{ "kernels", OF_LAUNCHES },
	{ "failures", OF_FAILURES },
	{ "threads", OF_CALLS },
	{ "api_trace", OF_EVENTS },
	{ "copies", OF_COPIES },
	{ "devices", OF_GPU },
	{ "device_work", OF_GPU },
	{ "device_copies", OF_GPU },
	{ "streams", OF_GPU },
	{ "pauses", OF_IDLE },
	{ "breakdown", OF_IDLE },
	{ "overlap", OF_IDLE },
	{ "queue", OF_IDLE },
	{ "critical_path", OF_IDLE },
	{ "gpu_state", OF_NVML },
	{ "prediction", OF_PREDICTION },
	{ "call_stacks", OF_STACKS },
	{ "hints_pauses", OF_IDLE },
	{ "allocation_calls", OF_ALLOCATIONS },
	{ "memory_over_time", OF_CALLS },
	{ "processes", OF_CALLS },
	{ "warnings", OF_WARNINGS },
	{ "gpu_trace", OF_GPU },
	{ "kernel_shapes", OF_GPU },
	{ "launch_gaps", OF_GPU },
	{ "kernel_families", OF_GPU },
	{ "busy_over_time", OF_GPU },
	{ "kernels_at_once", OF_GPU },
	{ "nccl", OF_NCCL },
	{ "operators", OF_RANGES },
	{ "spans", OF_RANGES },
	{ "nvtx_pace", OF_RANGES },
	{ "steps", OF_STEPS },
	{ "range_kernels", OF_RANGE_KERNELS },
	{ "operators_by_shape", OF_OPERATORS },
	{ "hints", OF_HINTS },
};

static bool is_at_level(const struct report *r, const char *level)
{
	char said[64];
	return provenance_fact(r, "level", said, sizeof said) && !strcmp(said, level);
}

static const char *why_no_calls(const struct report *r)
{
	if (!r->calls && is_at_level(r, "off"))
		return "nothing is recorded at level off; weir record has the level full unless it is "
		       "given another";
	if (r->trace->cut)
		return "there is none in the part that is read";
	return r->calls ? "there is none among the program's calls" : "no CUDA call was recorded";
}

/* Single events: counters have none. */
static const char *why_no_events(const struct report *r)
{
	if (r->calls && is_at_level(r, "stat"))
		return "level stat only counts calls; weir record has the level full unless it is given "
		       "another";
	return why_no_calls(r);
}

static const char *why_no_launch(const struct report *r)
{
	if (r->calls && !r->launches && !r->graph_launches && !r->trace->cut)
		return "no kernel was launched";
	return why_no_events(r);
}

static const char *why_no_failure(const struct report *r)
{
	if (r->calls && !r->errors)
		return r->trace->cut ? "no call failed in the part that is read" : "no call failed";
	return why_no_events(r);
}

static const char *why_no_activity(const struct report *r)
{
	if (r->sampled)
		return "only one launch in some was timed; weir record --gpu times all that runs";
	if (r->activities.n || r->device_kernels)
		return "none of the GPU activities is such";
	if (!r->calls)
		return why_no_calls(r);
	if (!provenance_asked_gpu(r))
		return "GPU activities were not recorded; weir record --gpu records them";
	if (r->trace->cut)
		return "no GPU activity is in the part that is read";
	if (r->launches || r->graph_launches || r->copies.n || r->sets.count)
		return "no GPU activity came to the recording, though work was launched; weir report "
		       "FILE says more among its warnings";
	return "the program launched nothing on a GPU";
}

static const char *why_no_range(const struct report *r)
{
	if (r->operators.n || r->span_rows.n)
		return "none of the ranges that were recorded is one that the program names itself";
	return "the program marks no range with NVTX; weir record --python names PyTorch's operators "
	       "and modules";
}

/* What there is one reason for. */
static const char *const always[OF_HINTS + 1] = {
	[OF_OPERATORS] = "no operator was recorded; weir record --python records PyTorch's",
	[OF_NVML] = "GPUs were not sampled; weir record --nvml does so",
	[OF_PREDICTION] = "no kernel was predicted; weir record --predict does so",
	[OF_STACKS] = "no call stack was recorded; weir record --stacks records them",
	[OF_WARNINGS] = "there is nothing to warn of",
};

static bool is_of_ranges(enum made_of of)
{
	return of == OF_RANGES || of == OF_RANGE_KERNELS || of == OF_OPERATORS || of == OF_STEPS;
}

const char *absent_why(const struct report *r, const char *section)
{
	size_t i = 0;
	while (i < sizeof sections / sizeof sections[0] &&
		strcmp(sections[i].section, section) != 0)
		i++;
	if (i == sizeof sections / sizeof sections[0])
		return NULL;
	const enum made_of of = sections[i].of;
	if (!r->calls && is_at_level(r, "off") && of != OF_WARNINGS)
		return why_no_calls(r);
	if (is_of_ranges(of) && r->calls && is_at_level(r, "stat"))
		return why_no_events(r);
	if (always[of])
		return always[of];
	switch (of) {
	case OF_CALLS:
		return why_no_calls(r);
	case OF_LAUNCHES:
		return why_no_launch(r);
	case OF_FAILURES:
		return why_no_failure(r);
	case OF_EVENTS:
		return why_no_events(r);
	case OF_COPIES:
		return r->calls && !r->trace->cut ? "no call copies memory" : why_no_calls(r);
	case OF_GPU:
		return why_no_activity(r);
	case OF_NCCL:
		return r->activities.n ? "no kernel of NCCL ran" : why_no_activity(r);
	case OF_RANGES:
		return why_no_range(r);
	case OF_RANGE_KERNELS:
		return r->operators.n ? why_no_activity(r) : why_no_range(r);
	case OF_STEPS:
		return r->launches || r->graph_launches
			       ? "no range is numbered, and no launch was waited for"
			       : why_no_launch(r);
	case OF_ALLOCATIONS:
		return r->calls && !r->trace->cut ? "no call allocates or frees memory"
						  : why_no_calls(r);
	case OF_IDLE:
		return r->activities.n && !r->sampled ? "no GPU was idle between two activities"
						      : why_no_activity(r);
	default:
		return r->activities.n ? "nothing was found" : why_no_activity(r);
	}
}
