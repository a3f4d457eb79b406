/*
 * The kernels of a trace that ran on a device, as samples for prediction. A sample has the launch,
 * its arguments, the time, and whether the kernel had the device to itself.
 *
 * Times come from GPU activities and arguments from their launches (recordings with --args). A
 * kernel is contended if another was resident on the device at the same moment. Samples come in the
 * order of their begin. Memory grows with their number.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"
#include "event/args.h"
#include "event/predicted.h"
#include "predict/predict.h"
#include "trace/meta.h"
#include "trace/trace.h"

/* A kernel as it was compiled: two of one name may differ in their attributes. */
struct sample_kernel {
	char *name; /* demangled */
	const char *mangled;
	struct predict_kernel k;
	bool has_shared; /* smem_static_bytes is known */
};

struct sample {
	struct predict_sample p; /* launch.kernel: of samples.kernels; name: its index; app: the
				  * process's index in the trace; order: start_ns */
	uint64_t start_ns, end_ns;
	uint64_t call_ticks; /* when the call began that asked for it, with has_call */
	uint32_t call_tid;
	uint64_t args_key; /* of all arguments, with has_args */
	uint32_t scalars;  /* of these arguments; launch.args of them are kept */
	uint32_t device;   /* of its process */
	uint32_t stream;
	bool has_call, has_args, has_device, has_stream, graph;
	bool has_dynamic; /* launch.smem_dynamic_bytes is known */
	bool has_prediction,
		graph_predicted;          /* of the kernel; of the graph that it was launched in */
	struct predicted_time prediction; /* what was predicted at the launch */
	const struct meta_device *on;     /* NULL: not known */
};

struct launch_samples {
	ARRAY(struct sample) v;
	ARRAY(struct sample_kernel *) kernels; /* each allocated: samples point there */
	uint64_t shapeless; /* kernels without grid and block, which are no samples */
};

/* 0 or -errno with a sentence; damaged chunks are passed over.  m outlives the samples. */
int launch_samples_load(const struct trace *t, const struct meta *m,
	struct launch_samples *ret_samples, struct error *err);
void launch_samples_fini(struct launch_samples *s);
