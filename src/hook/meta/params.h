/*
 * Records the arguments of kernel launches (weir record --args). The driver describes a function's
 * parameters after its first launch, and the layout is remembered by handle. Arguments are read
 * after the driver has accepted the launch, inside the call that owns them.
 *
 * Nothing allocates. Layouts have a fixed room and never move, so one thread may read while another
 * learns. When the room is full, later functions keep no arguments.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "event/args.h"
#include "hook/core/launch_shape.h"
#include "predict/predict.h"

/* A function, as far as it is known.  Stays where it is, as it is. */
struct function {
	struct predict_kernel kernel;
	_Atomic uint64_t handle;
	_Atomic uint32_t
		generation; /* in which it was learnt; another: to be asked for again.  Changes. */
	uint16_t count;
	uint16_t known; /* whether the driver told how the parameters lie */
	struct param_place place[];
};

/* The arguments of a successful launch of this function, by kernelParams or extra; false when its
 * parameters are not known. */
bool params_read(const struct function *f, void *const *params, void *const *extra,
	struct launch_args *ret_args);

/* The handle has been given out: it may be another function's than it was. */
void params_invalidate(uint64_t function);

/* Functions are about to go: none of the handles can be relied on. */
void params_invalidate_all(void);

/* Words that a launch's record holds besides its shape; by CONTROL_ARGS and CONTROL_PREDICT. */
uint32_t params_given(uint32_t control, const struct launch_shape *s, void *const *params,
	void *const *extra, struct launch_given *ret_given);

void params_forget(void); /* after a fork */
