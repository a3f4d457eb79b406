/*
 * Predicts a kernel's time at its launch, with the uncertainty and how well the launch fits the
 * device. Fit is arithmetic (occupancy.h). The time comes from the first of these predictors that
 * has an answer:
 *
 *	history   this very launch has run before: same kernel, geometry and scalar arguments
 *	shape     the kernel has run in other shapes: a linear model of waves and arguments
 *	sibling   kernels that are like it have run
 *	model     a forest, trained on recorded launches (model.h)
 *	bound     what bytes, FLOPs and the device's ceilings allow, times what is usually reached
 *
 * Pure: no clock, file, allocation or lock. The tables lie in the caller's memory, hold no
 * addresses, and several processes may map them. One thread, the collector, learns, and any number
 * of others may ask meanwhile. docs/explanation/predictions.md explains the design.
 */
#pragma once

#include "predict/launch.h"

/* 0 when the sizes are no powers of two or too large. */
size_t predict_bytes(const struct predict_sizes *sizes);

/* Empty tables in `memory`, aligned to 64 bytes.  -EINVAL when sizes or bytes do not fit. */
int predict_init(struct predict *p, void *memory, size_t bytes, const struct predict_sizes *sizes,
	const struct predict_device *device);

/* Another process's tables, or saved ones: -EINVAL when they are none, -EBADMSG when they are
 * damaged, -ENODEV when they are of another kind of device, -EXDEV when they are of another device
 * of this kind: predict_transfer() (d NULL: any will do).  They then say of it what *d says. */
int predict_attach(struct predict *p, void *memory, size_t bytes, const struct predict_device *d);

/* Tables of another device of the same kind become d's: what it has learnt stays as first guesses,
 * which the first launch of each here replaces.  Two such devices differ by some per cent, and
 * nothing says which is faster. */
void predict_transfer(struct predict *p, const struct predict_device *d);

/* Makes the tables fit to be kept: stores a checksum that predict_attach() tests.  Learning
 * withdraws it. */
void predict_seal(struct predict *p);

/* At a launch, any thread. */
void predict_ask(
	const struct predict *p, const struct predict_launch *l, struct predict_answer *ret_answer);

/* At a completion, the one thread that learns.  Samples that make no sense (no time, not finite,
 * refused geometry) are counted and otherwise ignored: false. */
bool predict_learn(struct predict *p, const struct predict_sample *s);

/* Puts a model in place of another, which is returned: free it when no thread can still be asking
 * it.  predict_offer() in predict/model.h does the same after testing it. */
const struct predict_model *predict_swap(struct predict *p, const struct predict_model *model);
