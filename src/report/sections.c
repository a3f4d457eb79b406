/* See sections.h. */
#include "report/sections.h"

#include <string.h>

#include "report/provenance.h"

#include "base/banned.h"

/* In the order of the report's JSON. */
static const struct section *const tables[] = {
	&section_calls,
	&section_kernels,
	&section_threads,
};

const struct section *section_find(const char *name, size_t bytes)
{
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		if (!strncmp(tables[i]->name, name, bytes) && !tables[i]->name[bytes])
			return tables[i];
	return NULL;
}

static const struct {
	const char *section;
	enum made_of of;
	const char *note; /* what its figures are; NULL: their names say it */
	const char *sums; /* columns whose sum over all rows means something */
} sections[] = {
	{ "calls", OF_CALLS,
		"A call of the runtime contains those of the driver that it makes: their times are in both, and don't add up.  A dash: only counted; of those that are counted, times are of the ones that failed.  Those that waited for the GPU: --only waits; a part of the run: --steps N-M, --range NAME.",
		NULL },
	{ "waits", OF_WAITS,
		"Calls that return when the GPU has done something: synchronizations, blocking copies, frees, and asynchronous copies that returned late: they count until the GPU had copied, where that is 100 us or more.  A call inside another one counts with that.  Shares are of the wall time that is read, with start-up unless --steady or --steps N-M leaves it out.",
		"wait_total_ns,share_of_run,count" },
	{ "kernels", OF_LAUNCHES,
		"Class: compute or memory, whose ceiling it comes closer to; latency: it is far below both; launch: the GPU mostly stood still before it, since the host launched late; with a question mark: a guess by its name.  flops_share, bytes_share: of what was measured on such a GPU, which may be passed; flops_peak_share: of its maker's peak; both: --only gpu.",
		"device_total_ns,share,count,graph_count,host_total_ns,flops,bytes" },
	{ "failures", OF_FAILURES, NULL, "count" },
	{ "threads", OF_CALLS, NULL,
		"calls,launches,timed_driver_calls,timed_driver_calls_ns,sync_calls,sync_ns,"
		"allocated_bytes" },
	{ "api_trace", OF_EVENTS,
		"A row a call: one of the runtime, and those of the driver that it made (caller).  Result 0 is success.  Calls that are only counted, such as cudaGetDevice, have no row: --only calls.",
		NULL },
	{ "copies", OF_COPIES, NULL, "count,bytes,device_total_ns" },
	{ "devices", OF_GPU,
		"Busy: something ran.  Shares are of the wall time in which recording was on, with start-up (without: --steady, --steps N-M); sums of kinds may overlap.  Of several traces that name no devices by UUID, a number that two of them use is taken for two devices.",
		NULL },
	{ "device_work", OF_GPU, NULL, NULL },
	{ "device_copies", OF_GPU,
		"From or to pageable memory the driver copies through a buffer of its own, at a fraction of the rate of pinned memory; what that costs, if it matters: weir hints.  Each copy: --only gpu_trace --filter 'kind = copy' --sort bytes.",
		"count,bytes,device_total_ns" },
	{ "streams", OF_GPU,
		"Busy: something of the stream ran.  Shares are of the wall time in which recording was on, with start-up unless --steady, --steps N-M or --after leaves it out.",
		"count,device_total_ns" },
	{ "pauses", OF_IDLE,
		"The longest times in which no GPU ran anything, by what the host did meanwhile; at most 20.  Each: --only idle_gaps; their sums: --only breakdown.",
		NULL },
	{ "idle_gaps", OF_IDLE,
		"Times in which no GPU ran anything, in their order, by what the host did for most of each, and where: the call, the operator, the module and the line of Python, as far as they are known.  The longest first: --sort ns; sums by cause: --only breakdown.",
		"ns" },
	{ "breakdown", OF_IDLE,
		"Each moment counts once: as computing where any GPU computed, else communicating, else copying, else by what the host did.  A blocking copy is a synchronizing call, too.  Communicating: NCCL; what gloo or MPI do on the host is the host's.  Without start-up: --steady, --steps N-M, --range NAME.",
		"ns,share" },
	{ "overlap", OF_IDLE,
		"Hidden: while the same GPU computed.  Communication: kernels of NCCL; operations on the host, as gloo's: --only nccl.",
		NULL },
	{ "queue", OF_IDLE,
		"Of calls that launch kernels, memcpys and memsets.  Queued: from the call's return to the start on the GPU.  Depth: how many have been asked for and have not begun.  Empty: none; when the GPU has done what it is at, it has to wait for the host.  Without start-up: --steady, --steps N-M, --range NAME.",
		NULL },
	{ "critical_path", OF_IDLE,
		"What the end of the run waited for, from the end backwards; the parts add up to the wall time.  Without start-up: --steady, --steps N-M, --range NAME.",
		"ns,share" },
	{ "gpu_state", OF_NVML, NULL, NULL },
	{ "prediction", OF_PREDICTION, NULL, NULL },
	{ "call_stacks", OF_STACKS, "The stacks, to sort and to filter: --only call_stacks.rows.",
		NULL },
	{ "call_stacks.rows", OF_STACKS,
		"Names in full: --full-names.  Lines are known of Python, and of code that was built with -g.",
		"count,errors,total_ns" },
	{ "hints_pauses", OF_IDLE, NULL, NULL },
	{ "allocation_calls", OF_ALLOCATIONS,
		"A call of the runtime contains that of the driver that it makes: their times are in both, and don't add up.",
		NULL },
	{ "memory_over_time", OF_CALLS, NULL, NULL },
	{ "processes", OF_CALLS, NULL,
		"threads,calls,launches,timed_driver_calls_ns,sync_ns,device_total_ns,"
		"allocated_bytes" },
	{ "warnings", OF_WARNINGS, NULL, NULL },
	{ "gpu_trace", OF_GPU,
		"Queued: from the return of the call that asked for it to its start.",
		"duration_ns,bytes" },
	{ "kernel_shapes", OF_GPU,
		"Occupancy: of the warps that an SM can hold, those that it holds of this kernel at a time: theoretical, from registers, shared memory and block.  Waves: blocks by those that the device holds at a time.  Of the device: what the grid fills of all SMs at once, which is less where there is less than one wave.",
		"device_total_ns,count" },
	{ "launch_gaps", OF_GPU,
		"Call: time in the driver's call that launches, where it was recorded; the runtime's around it takes longer (--only calls).  Queued: from its return to the kernel's start, while the GPU may be at what was launched before.  Of a graph's kernels the first has its launch.  Without start-up: --steady, --steps N-M.",
		"queued_total_ns,count,call_total_ns,device_total_ns" },
	{ "kernel_families", OF_GPU,
		"By what the names of kernels say that they do; collective: NCCL's.  What is not listed did not run.  Which kernels: --only kernels --filter 'family = gemm'.",
		"device_total_ns,device_total_estimate_ns,share,count,names" },
	{ "busy_over_time", OF_GPU,
		"The wall time in 120 equal parts; weir report draws it in a line, weir html as a picture.  Finer: a part of the run, with --after, --before, --steps or --range.  kernels_at_once: the mean of how many ran.",
		NULL },
	{ "kernels_at_once", OF_GPU,
		"For how much of the wall time so many kernels ran; of the time in which any ran: share_of_busy.",
		NULL },
	{ "nccl", OF_NCCL,
		"Of a kernel's operation, as NCCL's, the time on the device, of gloo's or MPI's that on the host, where those of several threads overlap: host_any_ns is the time in which one or more were under way.  A process whose operations last longer than the others' waits in them for the slowest.",
		"device_total_ns,count" },
	{ "operators", OF_RANGES,
		"Self: launched by the operator itself, which adds up over the rows (of a call of cuBLAS or cuDNN by the operator around it); total, FLOPs and bytes: also by those inside, which have rows, too; one inside another of its name counts with that.  Share: of all that ran.  Modules have the forward pass: autograd launches the backward pass outside of them.  Class: as of kernels; a dash: not known.",
		"device_self_ns,host_self_ns,device_count,share" },
	{ "spans", OF_CROSSING, NULL, NULL },
	{ "nvtx_pace", OF_RANGES,
		"Pace: from the begin of one to the begin of the next of the same name; duration: on the host.  Ranges that the program numbers, as ProfilerStep#2, are one row, and come first.  Without start-up: --steady, --steps N-M.",
		NULL },
	{ "steps", OF_STEPS,
		"Ranges that the program numbers, as ProfilerStep#2 or step 2; else what was done until an optimizer's step ended, or a call waited, or a kernel or a range of that name came again.  Launches: kernels launched meanwhile.  Busy: something ran meanwhile (what they launched, whenever it ran: --only range_kernels).",
		"duration_ns,launches,device_busy_ns" },
	{ "range_kernels", OF_RANGE_KERNELS,
		"An activity counts in each range around its launch; and in those of the thread for which its thread works, as in a backward pass.  Share: of the range.",
		NULL },
	{ "operators_by_shape", OF_OPERATORS,
		"Self: launched by the operator itself, which adds up over the rows.  Share: of all that ran, its self time.",
		"device_self_ns,host_self_ns,device_count,share" },
	{ "hints", OF_HINTS, NULL, NULL },
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
	return of == OF_RANGES || of == OF_CROSSING || of == OF_RANGE_KERNELS ||
	       of == OF_OPERATORS || of == OF_STEPS;
}

#define SECTIONS (sizeof sections / sizeof sections[0])

static size_t find(const char *section)
{
	size_t i = 0;
	while (i < SECTIONS && strcmp(sections[i].section, section) != 0)
		i++;
	return i;
}

const char *section_note(const char *section)
{
	const size_t i = find(section);
	return i < SECTIONS ? sections[i].note : NULL;
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

const char *section_sums(const char *section)
{
	const size_t i = find(section);
	return i < SECTIONS && sections[i].sums ? sections[i].sums : "";
}

/* Columns of kernels' names. */
static const struct {
	const char *section, *column;
} of_kernels[] = {
	{ "kernels", "name" },
	{ "device_work", "name" },
	{ "gpu_trace", "name" },
	{ "api_trace", "kernel" },
	{ "pauses", "after" },
	{ "pauses", "before" },
	{ "kernel_shapes", "name" },
	{ "launch_gaps", "name" },
	{ "kernel_families", "longest" },
	{ "nccl", "name" },
	{ "range_kernels", "name" },
};

bool section_names_kernels(const char *section, const char *column)
{
	for (size_t i = 0; i < sizeof of_kernels / sizeof of_kernels[0]; i++)
		if (!strcmp(of_kernels[i].section, section) &&
			!strcmp(of_kernels[i].column, column))
			return true;
	return false;
}

const char *section_why_empty(const struct report *r, const char *section)
{
	const struct section *table = section_find(section, strlen(section));
	const size_t i = find(section);
	if (!table && i == SECTIONS)
		return NULL;
	const enum made_of of = table ? table->of : sections[i].of;
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
