/* Lists all sections of the report, and says why one is empty. */
#include "report/sections.h"

#include "model/request_times.h"
#include "report/provenance.h"
#include "report/report_make.h"

/* In the order of the report's JSON; then those that are only made when somebody asks for them. */
static const struct section *const tables[] = {
	&section_trace,
	&section_provenance,
	&section_provenance_devices,
	&section_summary,
	&section_failures,
	&section_warnings,
	&section_totals,
	&section_clock,
	&section_join,
	&section_calls,
	&section_call_stacks,
	&section_callers,
	&section_kernels,
	&section_memory,
	&section_memory_live,
	&section_memcpys,
	&section_memsets,
	&section_devices,
	&section_gpu_state,
	&section_gpu_state_gpus,
	&section_gpu,
	&section_wall,
	&section_breakdown,
	&section_overlap,
	&section_queue,
	&section_critical_path,
	&section_path_host,
	&section_longest_gaps,
	&section_prediction,
	&section_predictors,
	&section_prediction_kernels,
	&section_device_activities,
	&section_memops,
	&section_operators,
	&section_spans,
	&section_streams,
	&section_processes,
	&section_threads,
	&section_hints,
	&section_hints_sum,
	&section_hints_window,
	&section_hints_idle_gaps,
	&section_gpu_trace,
	&section_api_trace,
	&section_waits,
	&section_operators_by_shape,
	&section_kernel_shapes,
	&section_launch_gaps,
	&section_kernel_families,
	&section_idle_gaps,
	&section_busy_over_time,
	&section_kernels_at_once,
	&section_nccl,
	&section_range_kernels,
	&section_range_pace,
	&section_steps,
	&section_allocation_calls,
	&section_memory_over_time,
	&section_requests,
	&section_request,
	&section_request_behind,
	&section_request_gpu_trace,
	&section_request_beside,
};
#define TABLES (sizeof tables / sizeof tables[0])

const struct section *section_at(size_t i)
{
	return i < TABLES ? tables[i] : NULL;
}

const struct section *section_find(const char *name, size_t bytes)
{
	for (size_t i = TABLES; i-- > 0;) /* those with all rows before those with the first */
		if (tables[i]->form != SECTION_MEMBERS && !strncmp(tables[i]->name, name, bytes) &&
			!tables[i]->name[bytes])
			return tables[i];
	return NULL;
}

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

/* Sections that lack data for one reason. */
static const char *const always[OF_HINTS + 1] = {
	[OF_OPERATORS] = "no operator was recorded; weir record --python records PyTorch's",
	[OF_NVML] = "GPUs were not sampled; weir record --nvml does so",
	[OF_PREDICTION] = "no kernel was predicted; weir record --predict does so",
	[OF_STACKS] = "no call stack was recorded; weir record --stacks records them",
	[OF_WARNINGS] = "there is nothing to warn of",
};

static bool is_of_requests(enum made_of of)
{
	return of == OF_REQUESTS || of == OF_REQUEST || of == OF_REQUEST_WORK;
}

static const char *why_no_request(const struct report *r, enum made_of of)
{
	if (!r->requests->v.n)
		return "no request was recorded; weir serve -o FILE records those to its models";
	if (r->request == REQUEST_NONE)
		return "weir report --request ID FILE says it of one request";
	return of == OF_REQUEST ? "it was not queued while a batch ran"
	       : r->requests->v.v[r->request].batch == BATCH_NONE ? "it ran in no batch"
								  : "no such activity was recorded";
}

static bool is_of_ranges(enum made_of of)
{
	return of == OF_RANGES || of == OF_CROSSING || of == OF_RANGE_KERNELS ||
	       of == OF_OPERATORS || of == OF_STEPS;
}

void section_put_note(FILE *out, const char *note, size_t width)
{
	const char *at = note;
	for (size_t column = 0; at && *at;) {
		const size_t blanks = strspn(at, " "), n = strcspn(at + blanks, " ");
		const bool new_line = column && column + blanks + n > width;
		fprintf(out, "%s%.*s", new_line ? "\n" : "", (int)(new_line ? n : blanks + n),
			new_line ? at + blanks : at);
		column = (new_line ? 0 : column + blanks) + n;
		at += blanks + n;
		if (!*at)
			putc('\n', out);
	}
}

static const char *why_empty(const struct report *r, const struct section *section)
{
	const enum made_of of = section->of;
	if (!r->calls && is_at_level(r, "off") && of != OF_WARNINGS && !is_of_requests(of))
		return why_no_calls(r);
	if (is_of_ranges(of) && r->calls && is_at_level(r, "stat"))
		return why_no_events(r);
	if (always[of])
		return always[of];
	if (is_of_requests(of))
		return why_no_request(r, of);
	switch (of) {
	case OF_CALLS:
		return why_no_calls(r);
	case OF_LAUNCHES:
		return why_no_launch(r);
	case OF_FAILURES:
		return why_no_failure(r);
	case OF_EVENTS:
		return why_no_events(r);
	case OF_WAITS:
		return r->calls && !is_at_level(r, "stat") && !r->trace->cut
			       ? "no call waited for the GPU"
			       : why_no_events(r);
	case OF_COPIES:
		return r->calls && !r->trace->cut ? "no call copies memory" : why_no_calls(r);
	case OF_GPU:
		return why_no_activity(r);
	case OF_NCCL:
		return r->activities.n ? "no kernel of NCCL ran, and no range is gloo's or MPI's"
				       : why_no_activity(r);
	case OF_RANGES:
		return why_no_range(r);
	case OF_CROSSING:
		return r->operators.n ? "no range was recorded that may cross others; those that "
					"nest are in operators"
				      : why_no_range(r);
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

static uint32_t facets_of_why(enum made_of of)
{
	if (is_of_requests(of))
		return FACET(REQUESTS);
	const bool by_calls = always[of] || of == OF_CALLS || of == OF_FAILURES ||
			      of == OF_EVENTS || of == OF_WAITS || of == OF_ALLOCATIONS ||
			      of == OF_COPIES;
	return by_calls ? FACET(CALLS) : FACET(CALLS) | FACET(DEVICE);
}

const char *section_why_empty(const struct report *r, const struct section *section)
{
	const uint32_t facets = facets_of_why(section->of);
	struct report *more;
	struct error err;
	if (!(facets & ~r->facets))
		return why_empty(r, section);
	if (report_make(r->trace, 0, facets, &more, &err))
		return NULL;
	const char *why = why_empty(more, section);
	report_free(more);
	return why;
}
