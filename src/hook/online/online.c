/* Runs the predictor inside the recorded program. */
#include "hook/online/online.h"

#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/sort.h"
#include "base/sys.h"
#include "event/predicted.h"
#include "hook/core/config.h"
#include "hook/core/metadata.h"
#include "hook/core/process.h"
#include "hook/meta/devices.h"
#include "hook/meta/kernels.h"
#include "hook/meta/params.h"
#include "hook/online/graph_runs.h"
#include "hook/online/history_file.h"
#include "hook/online/match.h"
#include "hook/online/overlap.h"
#include "hook/time/collector.h"
#include "predict/key.h"
#include "predict/model.h"
#include "predict/predictor.h"

#define BATCH (1u << 15) /* kernels between two looks at the launches */
#define KNOWN 2          /* times that a launch ran before it is no news */

static const struct predict_sizes sizes = { PREDICTED_LAUNCHES, PREDICTED_KERNELS };

/* A kernel that ran and waits for its launch. */
struct ran {
	uint64_t start_ns, end_ns, correlation, signature;
	uint32_t device, shared;
	uint32_t grid[3], block[3];
	bool matched, contended, graph;
	struct predict_launch launch;
};

struct item { /* of an order */
	uint64_t key;
	uint32_t index;
};

static struct {
	struct predict predict;
	_Atomic uint32_t ready; /* last: launches look at nothing else before it is set */
	bool known;             /* what the device can do */
	struct ran *batch;
	struct item *order;
	struct span *spans;
	uint32_t count;
	bool news; /* since somebody was told */
	struct predict_sample *recent;
	uint64_t recent_count;
} f;

static void *map(size_t bytes)
{
	const long at =
		sys(mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return sys_failed(at) ? NULL : (void *)at;
}

/* In large pages where there are any: a launch finds its entry without a walk through page tables
 * that nobody has in the cache. */
static void *map_large(size_t bytes)
{
	const size_t page = 2u << 20, room = (bytes + page - 1) & ~(page - 1);
	char *memory = map(room + page);
	if (!memory)
		return NULL;
	memory += -(uintptr_t)memory & (page - 1);
	sys(madvise, memory, room, MADV_HUGEPAGE);
	return memory;
}

static bool map_batch(void)
{
	f.batch = map(BATCH * sizeof *f.batch);
	f.order = map(BATCH * sizeof *f.order);
	f.spans = map(BATCH * sizeof *f.spans);
	f.recent = map(MODEL_SHADOW * sizeof *f.recent);
	return f.batch && f.order && f.spans && f.recent && match_start();
}

static bool start(const struct predict_config *o, const struct device_properties *p)
{
	struct predict_device d;
	const unsigned capability =
		(unsigned)(p->args[3] >> 16) * 10 + (unsigned)(p->args[3] & 0xffff);
	const size_t bytes = predict_bytes(&sizes);
	void *memory = map_large(bytes);
	if (predict_device_any(p->name, capability, (uint32_t)p->args[2], &d, &f.known)) {
		meta_message("no times are predicted: nothing is known of this device");
		return false;
	}
	memcpy(d.uuid, p->uuid, sizeof d.uuid);
	if (!memory || !map_batch() || predict_init(&f.predict, memory, bytes, &sizes, &d)) {
		meta_message("no times are predicted: there is no memory for the tables");
		return false;
	}
	if (!f.known)
		meta_message("of this device's peaks nothing is known: times are predicted of "
			     "kernels that have run before");
	history_file_start(&f.predict, o, &d);
	store_release(&f.ready, 1);
	return true;
}

/* One set of tables is of one kind of device: a launch does not say which it is for. */
void online_start(const struct device_properties *first, bool one_kind)
{
	const struct config *c = config_get();
	if (!c->predict || !hook_recorder.header)
		return;
	const struct predict_config config = { c->history, c->warm, c->model, c->models };
	if (!one_kind)
		meta_message("no times are predicted: the devices are of several kinds. Choose one "
			     "with CUDA_VISIBLE_DEVICES");
	else if (start(&config, first))
		completions_listen(online_learn);
}

void online_forget(void)
{
	store_relaxed(&f.ready, 0);
	overlap_forget();
	graphs_forget();
	history_file_forget();
}

static void shape_of(const struct record *r, struct predict_launch *l)
{
	l->grid[0] = (uint32_t)r->arg[LAUNCH_GRID_XY];
	l->grid[1] = (uint32_t)(r->arg[LAUNCH_GRID_XY] >> 32);
	l->grid[2] = (uint32_t)r->arg[LAUNCH_GRID_Z_BLOCK_X];
	l->block[0] = (uint32_t)(r->arg[LAUNCH_GRID_Z_BLOCK_X] >> 32);
	l->block[1] = (uint32_t)r->arg[LAUNCH_BLOCK_YZ];
	l->block[2] = (uint32_t)(r->arg[LAUNCH_BLOCK_YZ] >> 32);
	l->smem_dynamic_bytes = r->aux;
}

/* How long a launch will take: l has its kernel and shape, and gets the rest from args, which may
 * be NULL.  Before the launch or after it, any thread; false: no times are predicted here. */
static bool online_ask(
	struct predict_launch *l, const struct launch_args *args, struct predict_answer *ret_a)
{
	if (!load_acquire(&f.ready))
		return false;
	if (args) {
		l->args = args->kept;
		memcpy(l->arg, args->value, args->kept * sizeof l->arg[0]);
	}
	l->key = predict_key(l);
	if (args)
		l->key = predict_key_of_args(l->key, args->key);
	predict_ask(&f.predict, l, ret_a);
	return true;
}

/* The answer as it stands in a record: see predicted_word(). */
static uint64_t predict_launch(
	const struct predict_kernel *kernel, const struct launch_args *args, const struct record *r)
{
	struct predict_launch l = { .kernel = kernel };
	struct predict_answer a;
	shape_of(r, &l);
	if (!online_ask(&l, args, &a))
		return 0;
	if (!(r->flags & RECORD_CAPTURED))
		match_push(match_signature(kernel->id, l.grid, l.block, l.smem_dynamic_bytes),
			r->ticks, &l);
	if (a.tier == PREDICT_BOUND && !f.known)
		return 0;
	const struct predicted_time time = { a.t50_ns, a.t90_ns, (uint8_t)a.tier, a.class_only };
	return predicted_word(&time);
}

void online_given(struct record *r, const struct launch_given *g, uint32_t at)
{
	if (g->keep) {
		r->flags |= RECORD_ARGS;
		args_put(&g->args, r->arg + at);
	}
	if (!g->predict)
		return;
	r->flags |= RECORD_PREDICTED;
	r->arg[at + (g->keep ? args_words(&g->args) : 0)] =
		predict_launch(&g->function->kernel, g->has_args ? &g->args : NULL, r);
}

/* 0 of a graph that has a node whose work nobody knows beforehand, or no kernel. */
static uint64_t graph_signature(const struct graph_node *nodes, size_t count)
{
	enum { KERNEL = 0, CONDITIONAL = 13 }; /* CUgraphNodeType */
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++) {
		const struct graph_node *n = &nodes[i];
		const char *name = n->type == KERNEL ? kernel_name(n->function) : "";
		if (n->type == CONDITIONAL || !name)
			return 0;
		if (n->type == KERNEL)
			sum += match_name(name, n->grid, n->block, n->shared);
	}
	return graphs_signature(sum);
}

void online_graph_made(uint64_t exec, const struct graph_node *nodes, size_t count)
{
	graphs_set(exec, graph_signature(nodes, count));
}

/* A graph is predicted by what it took before, whole, and not by what its kernels are like. */
static struct predict_launch launch_of_graph(uint64_t signature)
{
	static const struct predict_kernel graph = { .id = 1 };
	return (struct predict_launch){ .kernel = &graph,
		.grid = { 1, 1, 1 },
		.block = { 1, 1, 1 },
		.key = signature,
		.whole = true };
}

uint64_t online_graph(const struct record *r)
{
	struct predict_answer a;
	if (!load_acquire(&f.ready))
		return 0;
	const uint64_t signature = graphs_find(r->arg[0]);
	if (!signature)
		return 0;
	const struct predict_launch l = launch_of_graph(signature);
	predict_ask(&f.predict, &l, &a);
	if (!(r->flags & RECORD_CAPTURED))
		match_push(signature, r->ticks, &l);
	const struct predicted_time time = { a.t50_ns, a.t90_ns, (uint8_t)a.tier, false };
	return a.tier ? predicted_word(&time) : 0;
}

#define HAS_LARGER_KEY(a, b) ((a).key > (b).key)

static void order_by(uint64_t (*key)(const struct ran *r))
{
	for (uint32_t i = 0; i < f.count; i++)
		f.order[i] = (struct item){ key(&f.batch[i]), i };
	SORT_IN_PLACE(f.order, f.count, HAS_LARGER_KEY)
}

static uint64_t by_correlation(const struct ran *r)
{
	return r->correlation;
}

/* Device by device, each in the order of start. */
static uint64_t by_start(const struct ran *r)
{
	return (uint64_t)r->device << 58 ^ r->start_ns;
}

static struct ran *in_order(uint32_t i)
{
	return &f.batch[f.order[i].index];
}

/* Runs of graphs that are whole, by there being a launch of just that.  One whose kernels are the
 * first of another's may be taken for it where a buffer ends between them. */
static void collect_graphs(void)
{
	uint32_t at = 0;
	for (struct graph_run *g; (g = graphs_next(&at)) && f.count < BATCH;) {
		const uint64_t signature = graphs_signature(g->sum);
		if (!match_waits(signature))
			continue;
		f.batch[f.count++] = (struct ran){ .start_ns = g->from_ns,
			.end_ns = g->to_ns,
			.correlation = g->correlation,
			.signature = signature,
			.device = g->device,
			.graph = true };
		g->correlation = 0;
	}
}

static void match_batch(void)
{
	match_take();
	collect_graphs();
	order_by(by_correlation);
	for (uint32_t i = 0; i < f.count; i++) {
		struct ran *r = in_order(i);
		r->matched = match_pop(r->signature, r->start_ns, &r->launch);
	}
}

static void mark_device(uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		f.spans[i] = (struct span){ in_order(i)->start_ns, in_order(i)->end_ns, false };
	overlap_mark(in_order(first)->device, f.spans + first, end - first);
	for (uint32_t i = first; i < end; i++)
		in_order(i)->contended = f.spans[i].shared;
}

static void mark_contended(void)
{
	uint32_t first = 0;
	for (uint32_t i = 1; i <= f.count; i++)
		if (i == f.count || in_order(i)->device != in_order(first)->device) {
			mark_device(first, i);
			first = i;
		}
}

static void fill_shape(struct predict_launch *l, const struct ran *r)
{
	memcpy(l->grid, r->grid, sizeof r->grid);
	memcpy(l->block, r->block, sizeof r->block);
	l->smem_dynamic_bytes = r->shared;
}

static void learn_from(const struct ran *r)
{
	struct predict_sample s = { .launch = r->launch,
		.measured_ns = (double)(r->end_ns - r->start_ns),
		.order = r->start_ns };
	if (r->graph)
		s.launch = launch_of_graph(r->signature);
	else
		fill_shape(&s.launch, r);
	s.launch.contended = r->contended;
	/* what shares the device is not remembered: it would be news for ever */
	f.news |= !r->contended && history_seen(&f.predict, s.launch.key) < KNOWN;
	if (predict_learn(&f.predict, &s) && !r->contended && !r->graph)
		f.recent[f.recent_count++ % MODEL_SHADOW] = s;
}

static void learn_batch(void)
{
	match_batch();
	order_by(by_start);
	mark_contended();
	for (uint32_t i = 0; i < f.count; i++)
		if (in_order(i)->matched)
			learn_from(in_order(i));
	f.count = 0;
	history_file_look(&f.predict, f.recent,
		f.recent_count < MODEL_SHADOW ? f.recent_count : MODEL_SHADOW);
}

static bool end_batch(void)
{
	learn_batch();
	const bool news = f.news;
	f.news = false;
	return news;
}

bool online_learn(const struct gpu_activity *w, const char *name)
{
	if (!load_acquire(&f.ready))
		return false;
	if (!w)
		return end_batch();
	if (!name || w->kind != GPU_KERNEL)
		return false;
	const uint64_t signature = match_name(name, w->grid, w->block, w->shared_dynamic);
	if (w->valid & GPU_HAS_GRAPH) {
		graphs_add(w, signature);
		return false;
	}
	if (f.count == BATCH)
		learn_batch();
	struct ran *r = &f.batch[f.count++];
	*r = (struct ran){ .start_ns = w->start_ns,
		.end_ns = w->end_ns,
		.correlation = w->correlation,
		.signature = signature,
		.device = w->device,
		.shared = w->shared_dynamic };
	memcpy(r->grid, w->grid, sizeof r->grid);
	memcpy(r->block, w->block, sizeof r->block);
	return false;
}
