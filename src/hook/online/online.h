/*
 * Predicts each kernel's time at its launch (weir record --predict) with predict/predict.h.
 *
 * Any thread asks in the middle of its launch, without a lock or an allocation. The thread that
 * delivers device times teaches, one thread at a time. It matches launches with kernels that ran
 * and looks for a new model, and never waits. The tables belong to this process. They start with
 * the history of an earlier run and go to the file at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/args.h"
#include "hook/core/launch_shape.h"
#include "event/format.h"
#include "predict/predict.h"

/* The history to begin from, and the models.  Empty: nothing. */
struct predict_config {
	const char *history; /* tables: read now, written at the end */
	const char *warm;    /* tables: read now */
	const char *model;   /* a model: read now and whenever it changes */
	const char *models;  /* a directory of models, of which one may fit the device */
};

struct device_properties;

/* Predictions begin for the devices of this process, if they are asked for and of one kind. If they
 * cannot, a message in the trace says why. */
void online_start(const struct device_properties *first, bool one_kind);

/* Sets the kernels of an executable graph; count 0: that is not known any more. */
void online_graph_made(uint64_t exec, const struct graph_node *nodes, size_t count);

/* Puts what a kernel was given into the record of its launch, from arg[at] on, and how long it will
 * run. The launch has succeeded, and is remembered to learn from it. */
void online_given(struct record *r, const struct launch_given *g, uint32_t at);

/* The same for the launch of a graph: 0 when it did not run before as it is now. */
uint64_t online_graph(const struct record *r);

/* A kernel that ran, by its name as it was compiled; NULL: that was all for now, and the answer is
 * whether there was a launch among them that is not known yet (collector.h). */
bool online_learn(const struct gpu_activity *w, const char *name);

/* Writes what was learnt into the file of which history was read. */
void history_file_at_exit(void);

void online_forget(void); /* after a fork: nothing is predicted until it is started again */
