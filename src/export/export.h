/*
 * Writes a trace in another tool's format.
 *
 * export_run() reads the trace once, chunk by chunk, and hands each call to an exporter, a const
 * struct of functions in exporters[]. Calls of a chunk come in the order of their begin, callers
 * first. Chunks come in file order, so threads interleave, and a caller may come a chunk after its
 * last callee. GPU activities and ranges go to exporters that take them, as they stand in the file.
 * Exporters of activities also learn which call launched each.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "event/decode.h"
#include "model/demangle.h"
#include "join/links.h"
#include "stack/stacks.h"
#include "trace/meta.h"
#include "trace/trace.h"

struct export
{
	const struct trace *trace;
	const struct meta *meta;
	const struct decoder *decoder; /* knows kernels of the chunk at hand */
	FILE *out;                     /* NULL for exporters that want a path */
	const char *path;
	struct error *err;
	const char *only; /* tables that are wanted, with commas between; NULL: all */
	void *state;      /* the exporter's */
	struct demangled names;
	uint32_t process;   /* of the chunk at hand */
	struct links links; /* for exporters that take activities */
	struct links_by_call calls;
	struct stacks stacks; /* for exporters that take calls */
	int failed;           /* -errno of the first failure of a callback, which ends the export */
};

struct export_call {
	const struct record *record;
	const struct schema_fn *fn; /* NULL: not in the schema */
	const char *name;
	const struct chunk_ref *chunk;
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	uint64_t end_ns;
	bool launch;     /* kernel and shape are there */
	uint32_t kernel; /* index into meta->names, or META_NONE */
	struct launch_shape shape;
	const struct call_link *link; /* of a call that asked for GPU activities, or NULL */
};

/* Any callback may be NULL but call. Those that return nothing set x->failed if they fail, and
 * the others return 0 or -errno, with a sentence in x->err or none. Nobody needs to look whether
 * x->out failed. */
struct exporter {
	const char *name;
	/* Endings of files that are written so when no format is named, blanks between; NULL: such
	 * files end as another format's do. */
	const char *suffixes;
	bool wants_path;
	int (*whole)(struct export *x); /* instead of all below: reads the trace itself */
	int (*begin)(struct export *x);
	/* Bit 1 << kind of the chunks that are read after begin; NULL: those that are called for.
	 * An exporter that has this takes x->only; others refuse it. */
	uint32_t (*kinds)(const struct export *x);
	void (*thread)(struct export *x, const struct chunk_ref *c); /* first of a thread */
	void (*call)(struct export *x, const struct export_call *c);
	/* link: of the call that asked for it, or NULL */
	void (*activity)(struct export *x, const struct chunk_ref *c, const struct gpu_activity *w,
		const struct call_link *link);
	void (*range)(struct export *x, const struct chunk_ref *c, const struct range *g);
	void (*chunk_end)(struct export *x, const struct chunk_ref *c);
	int (*end)(struct export *x);
	void (*cleanup)(struct export *x); /* also after a failure */
};

extern const struct exporter *const exporters[]; /* NULL-terminated */
const struct exporter *exporter_find(const char *name);
const struct exporter *exporter_of_file(const char *path); /* by its ending, or NULL */

/* path: where to write, mode 0600, whole or not at all; NULL: to out.  only: see struct export.
 * 0 or -errno; -ENODATA: the trace or the exporter does not have what is asked for. */
int export_run(const struct exporter *e, const struct trace *t, const char *only, const char *path,
	FILE *out, struct error *err);

/* The link of a call that asked for GPU activities, or NULL. */
const struct call_link *export_link_of(
	const struct export *x, uint32_t process, uint32_t tid, const struct record *r);

/* The stack of a call, into x->stacks.rows, or STACK_NONE. */
uint32_t export_stack_of(const struct export *x, const struct export_call *c);

/* The call's arguments, so far as they were recorded, into the object of JSON that is open. */
struct json;
void export_put_args(struct export *x, struct json *j, const struct export_call *c);

/* One argument, unless the record lacks it: integers as numbers, the rest as the text that a reader
 * sees. */
void export_put_arg(struct json *j, const struct schema_fn *fn, unsigned i, const struct record *r);

/* kernel: its name, or NULL. */
void export_put_launch(struct json *j, const char *kernel, const struct launch_shape *shape,
	const struct record *r);

/* Nanoseconds from the beginning of the trace until then. */
uint64_t export_since(const struct export *x, uint64_t ns);

/* The kernel's name as people write it; never NULL. */
const char *export_kernel_name(struct export *x, uint32_t kernel);

/* A string of GPU activities or a range of the chunk at hand, demangled; never NULL. */
const char *export_string(struct export *x, uint32_t id);

extern const struct exporter export_perfetto, export_chrome, export_csv, export_ndjson,
	export_columns, export_sqlite, export_memory_viz, export_dataset, export_dataset_card,
	export_otlp;
