/*
 * The files of the kernel library share this: the open library, its plans, and how a kernel gets
 * from its name and text into the driver.
 *
 * Failures are numbers of enum weir_kernels_status, with a sentence in a struct error.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/array.h"
#include "base/error.h"
#include "kernels/kernel_driver.h"
#include "kernels/nvrtc.h"
#include "kernels/conv.h"
#include "kernels/gemm.h"
#include "kernels/rows.h"
#include "weir/kernels.h"

struct weir_kernels {
	struct kernel_driver cu;
	void *context;
	struct kernel_device device;
	struct nvrtc *nvrtc; /* NULL: it is not here */
	char *cache;         /* NULL: none */
	atomic_uint holders; /* the handle and its plans */
	pthread_mutex_t lock;
	ARRAY(struct loaded {
		char *name;
		void *module;
		void *function;
		const char *from; /* "cache", "NVRTC" or "built in" */
	})
	loaded; /* under the lock */
};

struct launch {
	void *function;
	unsigned grid, block, cluster, shared_bytes;
	bool ahead; /* it may begin before the launch before it has ended, for which it waits itself
		     */
};

struct weir_plan {
	enum { PLAN_ROWS, PLAN_GEMM, PLAN_CONV } kind;
	struct weir_kernels *kernels;
	struct {
		struct weir_rows rows; /* strides and pitches are filled in */
		struct weir_gemm gemm; /* also the product that a convolution is */
		struct weir_conv conv;
	} what;
	struct conv_packed packed;       /* where there is a launch that packs */
	struct split_operand operand[2]; /* A and B of a product's fast launch */
	struct gemm_choice tile;         /* of a product's fast launch */
	struct launch fast;              /* function NULL: there is none */
	struct launch plain;
	struct launch sum; /* behind the fast one: of the parts in the workspace */
	struct launch
		pack; /* before the fast one: into the workspace; of operands that are copied too */
	size_t workspace_bytes;
	double predicted_ns;
	char name[80]; /* of the kernel that an aligned run launches */
	char text[400];
};

/* weir_kernels_open() with a driver's file. */
int kernels_open(const struct weir_kernels_options *options, const char *driver,
	struct weir_kernels **ret, struct error *err);

/* The message of the library's functions for weir_kernels_error(). */
extern _Thread_local struct error kernel_error;
int kernel_argument(const char *what);

/* The function of a kernel whose program is `text`, from memory, the cache, NVRTC or what is built
 * in.  ret_from says which.  Any thread. */
int kernel_load(struct weir_kernels *k, const char *name, const char *text, void **ret_function,
	const char **ret_from, struct error *err);
void kernel_unload(struct weir_kernels *k);

int kernel_check(
	int (*get_name)(int, const char **), int code, const char *function, struct error *err);
#define KERNEL_CALL(k, err, name, ...)                                                             \
	kernel_check((k)->cu.cuGetErrorName, (k)->cu.name(__VA_ARGS__), #name, err)

/* A launch's work into a stream: the kernel's only parameter is at args. */
int kernel_launch(const struct weir_kernels *k, const struct launch *l, void *args, void *stream);

/* Loads what a launch needs; grid and cluster are filled in already. */
int kernel_prepare(struct weir_kernels *k, const char *name, struct buf *program, struct launch *l,
	const char **ret_from, struct error *err);

/* How many of a launch's clusters run at a time. */
int kernel_count_clusters(const struct weir_kernels *k, const char *name, const struct launch *l,
	unsigned *ret, struct error *err);

/* The plan is the library's from now on. */
void plan_finish(struct weir_plan *p, struct weir_kernels *k);

/* The line about a plan: from is where its kernel came from, why is what follows behind it. */
void plan_describe(struct weir_plan *p, const char *name, const char *from,
	const struct launch *launch, double predicted_ns, const char *why);
