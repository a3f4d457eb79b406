/* Collects the GPU activities of each call as ops, for recording.c. */
#pragma once

#include "predict/occupancy.h"
#include "trace/meta.h"
#include "model/gpu_calls.h"
#include "whatif/recording.h"

/* An op, and the call that asked for it. */
struct timed_op {
	uint64_t ticks; /* of that call */
	uint64_t start_ns, end_ns;
	uint32_t process, tid;
	struct device_op op;
};

struct timed_ops {
	ARRAY(struct timed_op) v; /* by process, thread, call and begin */
};

/* The SMs of a process's device, and what one holds. */
struct op_device {
	uint32_t sms;
	const struct occupancy_device *sm; /* never NULL */
};
struct op_device op_device_of(const struct meta *m, uint32_t process);

/* A kernel, without its time, from its shape and what is known of its code; attributes may be NULL.
 */
struct device_op op_of_launch(const struct op_device *d, const struct gpu_call *c,
	const struct meta_attributes *attributes);

/* 0 or -errno. */
int timed_ops_load(const struct trace *t, const struct meta *m, struct timed_ops *ret_ops);

/* The place of a call's operations, and their number. */
size_t timed_ops_find(const struct timed_ops *ops, const struct gpu_call *c, uint32_t *ret_count);
