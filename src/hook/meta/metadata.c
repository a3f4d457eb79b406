/* See note.h.  Everything here runs after a call of the program has returned from the driver. */
#include "hook/meta/metadata.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "cuda_types.h"
#include "hook/time/cupti.h"
#include "hook/call.h"
#include "hook/online/online.h"
#include "hook/online/graphs.h"
#include "hook/online/match.h"
#include "hook/range/operator.h"
#include "hook/pages.h"
#include "hook/meta/params.h"
#include "hook/range/python.h"
#include "hook/resolve.h"
#include "hook/time/event_timer.h"
#include "hook/meta/strings.h"

/* The real function by its table name, typed by its first use. */
#define REAL(name, ...) ((int (*)(__VA_ARGS__))hook_real[FN_##name])

/* --- writing ------------------------------------------------------------------------------ */

static struct record *meta_begin(enum meta_id id, uint32_t args, uint32_t bytes)
{
	const uint32_t words = RECORD_WORDS + args + (bytes + 7) / 8;
	struct record *r = words <= UINT16_MAX ? meta_reserve(&hook_recorder, words) : NULL;
	if (!r)
		return NULL;
	r->ticks = clock_now();
	r->dur = 0;
	r->words = (uint16_t)words;
	r->aux = bytes;
	return r;
}

void note_text(
	enum meta_id id, const uint64_t *args, uint32_t count, const char *text, uint32_t bytes)
{
	struct record *r = meta_begin(id, count, bytes);
	if (!r)
		return;
	if (count)
		memcpy(r->arg, args, count * 8);
	memcpy(r->arg + count, text, bytes);
	record_commit(r, (uint16_t)id);
}

bool note_has_room(void)
{
	if (!hook_recorder.header || !meta_is_scarce(&hook_recorder))
		return true;
	__atomic_fetch_add(&hook_recorder.header->unnamed, 1, __ATOMIC_RELAXED);
	return false;
}

/* --- kernels ------------------------------------------------------------------------------ */

/*
 * What is in the trace already, so that it is written once: handles and what they were said to
 * be.  A handle that the driver gives out again for something else is another pair, so nothing
 * needs to be forgotten when a module is unloaded.  Open addressing in a window; a full window
 * gives up its first slot, and that handle may be written twice.
 */
#define KNOWN_BITS 16
#define KNOWN_SIZE (1u << KNOWN_BITS)
#define WINDOW     16u

struct known {
	uint64_t handle[KNOWN_SIZE];
	uint64_t hash[KNOWN_SIZE];
};
static struct known kernels OWN_PAGES, attributes OWN_PAGES;

static uint64_t hash_bytes(const void *data, size_t bytes)
{
	const unsigned char *p = data;
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < bytes; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

static uint32_t slot_of(uint64_t handle)
{
	return (uint32_t)(handle * 0x9e3779b97f4a7c15u >> (64 - KNOWN_BITS));
}

/* True when it was not known that the handle means this. */
static bool remember(struct known *k, uint64_t handle, uint64_t hash)
{
	uint32_t at = slot_of(handle);
	for (uint32_t i = 0; i < WINDOW; i++) {
		const uint32_t slot = (at + i) % KNOWN_SIZE;
		uint64_t seen = 0;
		if (__atomic_compare_exchange_n(&k->handle[slot], &seen, handle, false,
			    __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
			seen == handle)
			return __atomic_exchange_n(&k->hash[slot], hash, __ATOMIC_RELAXED) != hash;
	}
	__atomic_store_n(&k->handle[at], handle, __ATOMIC_RELAXED);
	__atomic_store_n(&k->hash[at], hash, __ATOMIC_RELAXED);
	return true;
}

bool kernel_is_known(uint64_t handle)
{
	for (uint32_t i = 0, at = slot_of(handle); i < WINDOW; i++)
		if (__atomic_load_n(&kernels.handle[(at + i) % KNOWN_SIZE], __ATOMIC_RELAXED) ==
			handle)
			return true;
	return false;
}

static void name_kernel(uint64_t handle, uint64_t module, const char *name)
{
	const size_t bytes = strnlen(name, 16384);
	params_renew(handle);
	if (!hook_recorder.header || !remember(&kernels, handle, hash_bytes(name, bytes)))
		return;
	const uint64_t args[] = { handle, module };
	note_text(META_KERNEL, args, 2, name, (uint32_t)bytes);
}

/* A CUfunction's name, or a CUkernel's: launches take either. */
const char *ask_name(uint64_t handle)
{
	const char *name = NULL;
	if (hook_real[FN_cuFuncGetName] &&
		!REAL(cuFuncGetName, const char **, void *)(&name, (void *)handle) && name)
		return name;
	if (hook_real[FN_cuKernelGetName] &&
		!REAL(cuKernelGetName, const char **, void *)(&name, (void *)handle))
		return name;
	return NULL;
}

void note_kernel(uint64_t handle)
{
	if (!handle || !hook_recorder.header || kernel_is_known(handle))
		return;
	const char *name = ask_name(handle);
	if (name)
		name_kernel(handle, 0, name);
}

void note_cuModuleGetFunction(int result, void *function, void *module, const char *name)
{
	if (!result && function && name)
		name_kernel(word_of_u64(function), (uintptr_t)module, name);
}

void note_cuLibraryGetKernel(int result, void *kernel, void *library, const char *name)
{
	note_cuModuleGetFunction(result, kernel, library, name);
}

void note_cuKernelGetFunction(int result, void *function, void *kernel)
{
	if (result || !function || !hook_recorder.header)
		return;
	const uint64_t args[] = { word_of_u64(function), (uintptr_t)kernel };
	note_kernel(args[1]);
	params_renew(args[0]);
	if (!remember(&kernels, args[0], args[1]))
		return;
	note_text(META_ALIAS, args, 2, "", 0);
}

void note_cuModuleEnumerateFunctions(int result, void *functions, unsigned count, void *module)
{
	for (unsigned i = 0; !result && functions && i < count; i++)
		note_kernel(((const uint64_t *)functions)[i]);
}

void note_cuLibraryEnumerateKernels(int result, void *list, unsigned count, void *library)
{
	note_cuModuleEnumerateFunctions(result, list, count, library);
}

/* Which question of CUfunction_attribute each of ours is. */
static const int attribute_asked[ATTRIBUTES] = {
	[ATTRIBUTE_MAX_THREADS] = 0,
	[ATTRIBUTE_STATIC_SHARED] = 1,
	[ATTRIBUTE_CONST] = 2,
	[ATTRIBUTE_LOCAL] = 3,
	[ATTRIBUTE_REGISTERS] = 4,
	[ATTRIBUTE_PTX_VERSION] = 5,
	[ATTRIBUTE_BINARY_VERSION] = 6,
	[ATTRIBUTE_MAX_DYNAMIC_SHARED] = 8,
};

/* The attributes of a kernel are those of its function in the context at hand. */
static bool ask_attribute(uint64_t handle, unsigned i, uint32_t *ret_value)
{
	int value = 0;
	void *function = NULL;
	if (!hook_real[FN_cuFuncGetAttribute])
		return false;
	int (*ask)(int *, int, void *) = hook_real[FN_cuFuncGetAttribute];
	if (ask(&value, attribute_asked[i], (void *)handle) &&
		(!hook_real[FN_cuKernelGetFunction] ||
			REAL(cuKernelGetFunction, void **, void *)(&function, (void *)handle) ||
			ask(&value, attribute_asked[i], function)))
		return false;
	*ret_value = (uint32_t)value;
	return value >= 0;
}

uint32_t note_attributes(uint64_t handle, uint32_t value[ATTRIBUTES])
{
	uint64_t args[2 + ATTRIBUTES / 2] = { handle };
	for (unsigned i = 0; i < ATTRIBUTES; i++) {
		value[i] = 0;
		if (ask_attribute(handle, i, &value[i]))
			args[1] |= 1ull << i;
		args[2 + i / 2] |= (uint64_t)value[i] << i % 2 * 32;
	}
	const uint64_t hash = hash_bytes(args + 1, sizeof args - 8);
	if (args[1] && hook_recorder.header && remember(&attributes, handle, hash))
		note_text(META_ATTRIBUTES, args, sizeof args / 8, "", 0);
	return (uint32_t)args[1];
}

/* --- captures ----------------------------------------------------------------------------- */

bool stream_is_capturing(void *stream, int per_thread)
{
	int status = 0;
	if (!stream && !per_thread)
		return false; /* the legacy stream can't be captured, and asking it may fail */
	const enum fn fn = per_thread ? FN_cuStreamIsCapturing_ptsz : FN_cuStreamIsCapturing;
	int (*ask)(void *, int *) = hook_real[fn];
	return ask && !ask(stream, &status) && status == 1;
}

static void captures_add(int by)
{
	__atomic_fetch_add(&hook_hot.captures, by, __ATOMIC_RELAXED);
}

void note_cuStreamBeginCapture(int result, void *stream)
{
	if (!result)
		captures_add(1);
}

void note_cuStreamBeginCapture_v2(int result, void *stream, int mode)
{
	note_cuStreamBeginCapture(result, stream);
}

void note_cuStreamBeginCaptureToGraph(int result, void *stream, void *graph, void *dependencies,
	void *data, size_t count, int mode)
{
	note_cuStreamBeginCapture(result, stream);
}

/*
 * An invalidated capture, and one whose streams were not joined, end although the call fails;
 * one that is ended on the wrong stream goes on.  Better too many than too few: while there is
 * one, launches ask the driver.
 */
void note_cuStreamEndCapture(int result, void *stream, void *graph)
{
	enum { INVALIDATED = 901, UNJOINED = 904, ISOLATION = 905 };
	if (!result || result == INVALIDATED || result == UNJOINED || result == ISOLATION)
		captures_add(-1);
}

/* --- graphs ------------------------------------------------------------------------------- */

enum { NODE_KERNEL = 0, NODE_CHILD = 4, NODE_CONDITIONAL = 13 }; /* CUgraphNodeType */
#define NODES_A_RECORD 1024u

struct expansion {
	struct graph_node *nodes; /* own mapping */
	size_t count, room;
};

static void describe_kernel(struct graph_node *to, void *node)
{
	struct cu_kernel_node_params p;
	memset(&p, 0, sizeof p);
	const enum fn fn = hook_real[FN_cuGraphKernelNodeGetParams_v2]
				   ? FN_cuGraphKernelNodeGetParams_v2
				   : FN_cuGraphKernelNodeGetParams;
	int (*ask)(void *, void *) = hook_real[fn];
	if (!ask || ask(node, &p))
		return;
	to->function = (uintptr_t)(p.func ? p.func : p.kern);
	to->shared = p.shared_bytes;
	memcpy(to->grid, &p.grid_x, sizeof to->grid);
	memcpy(to->block, &p.block_x, sizeof to->block);
	note_kernel(to->function);
}

static bool make_room(struct expansion *x, size_t more)
{
	if (x->count + more <= x->room)
		return true;
	const size_t room = (x->count + more) * 2;
	const size_t bytes = room * sizeof *x->nodes;
	const long at =
		x->nodes ? sys(mremap, x->nodes, x->room * sizeof *x->nodes, bytes, MREMAP_MAYMOVE)
			 : sys(mmap, NULL, bytes, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(at))
		return false;
	x->nodes = (struct graph_node *)at;
	x->room = room;
	return true;
}

static void expand(struct expansion *x, void *graph, int depth);

static void expand_node(struct expansion *x, void *node, int depth)
{
	int type = -1;
	void *child = NULL;
	if (REAL(cuGraphNodeGetType, void *, int *)(node, &type) || !make_room(x, 1))
		return;
	if (type == NODE_CHILD && depth < 16 && hook_real[FN_cuGraphChildGraphNodeGetGraph] &&
		!REAL(cuGraphChildGraphNodeGetGraph, void *, void **)(node, &child)) {
		expand(x, child, depth + 1);
		return;
	}
	struct graph_node *to = &x->nodes[x->count++];
	*to = (struct graph_node){ .type = (uint32_t)type, .node = (uintptr_t)node };
	if (type == NODE_KERNEL)
		describe_kernel(to, node);
}

static void expand(struct expansion *x, void *graph, int depth)
{
	size_t count = 0;
	int (*get)(void *, void **, size_t *) = hook_real[FN_cuGraphGetNodes];
	if (!get || !hook_real[FN_cuGraphNodeGetType] || get(graph, NULL, &count) || !count)
		return;
	const size_t bytes = count * sizeof(void *);
	const long at =
		sys(mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(at))
		return;
	void **nodes = (void **)at;
	if (!get(graph, nodes, &count))
		for (size_t i = 0; i < count; i++)
			expand_node(x, nodes[i], depth);
	sys(munmap, at, bytes);
}

static struct known graphs OWN_PAGES;

static void write_graph(uint64_t exec, const struct expansion *x)
{
	for (size_t from = 0; from < x->count || !from; from += NODES_A_RECORD) {
		const size_t left = x->count - from;
		const uint32_t n = (uint32_t)(left < NODES_A_RECORD ? left : NODES_A_RECORD);
		struct record *r = meta_begin(META_GRAPH, 3, n * (uint32_t)sizeof *x->nodes);
		if (!r)
			break;
		r->aux = n;
		r->arg[0] = exec, r->arg[1] = x->count, r->arg[2] = from;
		if (n)
			memcpy(r->arg + 3, x->nodes + from, n * sizeof *x->nodes);
		record_commit(r, META_GRAPH);
	}
}

/* 0 of one that has a node whose work nobody knows beforehand, or no kernel. */
static uint64_t signature_of(const struct expansion *x)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < x->count; i++) {
		const struct graph_node *n = &x->nodes[i];
		const char *name = n->type == NODE_KERNEL ? ask_name(n->function) : "";
		if (n->type == NODE_CONDITIONAL || !name)
			return 0;
		if (n->type == NODE_KERNEL)
			sum += match_name(name, n->grid, n->block, n->shared);
	}
	return graphs_signature(sum);
}

/* Most updates change parameters alone, and are nothing new. */
static void note_graph(uint64_t exec, void *graph)
{
	if (!hook_recorder.header)
		return;
	struct expansion x = { 0 };
	expand(&x, graph, 0);
	if (hook_recorder.header->control & CONTROL_PREDICT)
		graphs_set(exec, signature_of(&x));
	if (remember(&graphs, exec, hash_bytes(x.nodes, x.count * sizeof *x.nodes)))
		write_graph(exec, &x);
	if (x.nodes)
		sys(munmap, x.nodes, x.room * sizeof *x.nodes);
}

void note_cuGraphInstantiate(int result, void *exec, void *graph, void *node, void *log, size_t n)
{
	if (!result && exec)
		note_graph(word_of_u64(exec), graph);
}

void note_cuGraphInstantiateWithFlags(int result, void *exec, void *graph, unsigned long long flags)
{
	note_cuGraphInstantiate(result, exec, graph, NULL, NULL, 0);
}

void note_cuGraphInstantiateWithParams(int result, void *exec, void *graph, void *params)
{
	note_cuGraphInstantiate(result, exec, graph, NULL, NULL, 0);
}

void note_cuGraphExecUpdate(int result, void *exec, void *graph, void *node, void *update)
{
	if (!result)
		note_graph((uintptr_t)exec, graph);
}

void note_cuGraphExecUpdate_v2(int result, void *exec, void *graph, void *info)
{
	note_cuGraphExecUpdate(result, exec, graph, NULL, NULL);
}

static void note_node(void *exec, const struct graph_node *node)
{
	remember(&graphs, (uintptr_t)exec, 0); /* not what it was when it was instantiated */
	graphs_set((uintptr_t)exec, 0);
	struct record *r = meta_begin(META_NODE, 1, sizeof *node);
	if (!r)
		return;
	r->aux = 1;
	r->arg[0] = (uintptr_t)exec;
	memcpy(r->arg + 1, node, sizeof *node);
	record_commit(r, META_NODE);
}

static void note_params(
	void *exec, void *node, const struct cu_kernel_node_params *p, void *function)
{
	struct graph_node to = {
		.type = NODE_KERNEL, .shared = p->shared_bytes, .node = (uintptr_t)node
	};
	to.function = (uintptr_t)function;
	memcpy(to.grid, &p->grid_x, sizeof to.grid);
	memcpy(to.block, &p->block_x, sizeof to.block);
	note_kernel(to.function);
	note_node(exec, &to);
}

void note_cuGraphExecKernelNodeSetParams(int result, void *exec, void *node, const void *params)
{
	const struct cu_kernel_node_params *p = params; /* version 1 ends before kern */
	if (!result && p)
		note_params(exec, node, p, p->func);
}

void note_cuGraphExecKernelNodeSetParams_v2(int result, void *exec, void *node, const void *params)
{
	const struct cu_kernel_node_params *p = params;
	if (!result && p)
		note_params(exec, node, p, p->func ? p->func : p->kern);
}

void note_cuGraphNodeSetEnabled(int result, void *exec, void *node, unsigned enabled)
{
	if (result)
		return;
	struct graph_node to = { .type = NODE_KERNEL, .node = (uintptr_t)node };
	int type = NODE_KERNEL;
	if (hook_real[FN_cuGraphNodeGetType] &&
		!REAL(cuGraphNodeGetType, void *, int *)(node, &type))
		to.type = (uint32_t)type;
	if (type == NODE_KERNEL)
		describe_kernel(&to, node);
	to.type |= enabled ? 0 : 1u << 31;
	note_node(exec, &to);
}

/* --- devices ------------------------------------------------------------------------------- */

static uint64_t device_attribute(int device, int which)
{
	int value = 0;
	if (REAL(cuDeviceGetAttribute, int *, int, int)(&value, which, device) || value < 0)
		return 0;
	return (uint64_t)value;
}

struct device_told {
	char name[256];
	uint64_t args[4]; /* as META_DEVICE has them */
	uint8_t uuid[16]; /* zeros: not known */
};

/* Of a part of a device (MIG) its own, where the driver knows that question. */
static void ask_uuid(int i, uint8_t ret_uuid[16])
{
	int (*ask)(void *, int) = hook_real[FN_cuDeviceGetUuid_v2];
	if (!ask)
		ask = hook_real[FN_cuDeviceGetUuid];
	if (!ask || ask(ret_uuid, i))
		memset(ret_uuid, 0, 16);
}

/* What a device is.  CUdevice is its number. */
static bool ask_device(int i, struct device_told *ret_d)
{
	enum { MULTIPROCESSORS = 16, MAJOR = 75, MINOR = 76 }; /* CUdevice_attribute */
	size_t bytes = 0;
	ret_d->name[0] = 0;
	if (REAL(cuDeviceGetName, char *, int, int)(ret_d->name, sizeof ret_d->name, i) ||
		REAL(cuDeviceTotalMem_v2, size_t *, int)(&bytes, i))
		return false;
	ret_d->args[0] = (uint64_t)i;
	ret_d->args[1] = bytes;
	ret_d->args[2] = device_attribute(i, MULTIPROCESSORS);
	ret_d->args[3] = device_attribute(i, MAJOR) << 16 | device_attribute(i, MINOR);
	ask_uuid(i, ret_d->uuid);
	return true;
}

static void note_uuid(const struct device_told *d)
{
	static const uint8_t none[16];
	uint64_t args[3] = { d->args[0] };
	memcpy(args + 1, d->uuid, sizeof d->uuid);
	if (memcmp(d->uuid, none, sizeof none))
		note_text(META_UUID, args, 3, "", 0);
}

static bool same_kind(const struct device_told *a, const struct device_told *b)
{
	return !strncmp(a->name, b->name, sizeof a->name) && a->args[2] == b->args[2] &&
	       a->args[3] == b->args[3];
}

/* One set of tables is of one kind of device: a launch does not say which it is for. */
static void start_forecast(const struct device_told *d, bool alike, const uint8_t uuid[16])
{
	struct forecast_orders orders;
	if (!process_wants_forecast(&orders))
		return;
	if (!alike)
		process_note("no times are predicted: the devices are of several kinds; choose one "
			     "with CUDA_VISIBLE_DEVICES");
	else if (forecast_start(&orders, d->name,
			 (unsigned)(d->args[3] >> 16) * 10 + (unsigned)(d->args[3] & 0xffff),
			 (uint32_t)d->args[2], uuid))
		cupti_learner = forecast_learn;
}

/* What the devices are, for whoever compares kernels with what these can do. */
static void note_devices(void)
{
	int count = 0;
	if (!hook_real[FN_cuDeviceGetCount] || !hook_real[FN_cuDeviceGetName] ||
		!hook_real[FN_cuDeviceTotalMem_v2] || !hook_real[FN_cuDeviceGetAttribute] ||
		REAL(cuDeviceGetCount, int *)(&count))
		return;
	struct device_told first = { "", { 0 }, { 0 } }, d;
	struct predict_uuids all = { 0 };
	bool alike = true;
	for (int i = 0; i < count && i < 64; i++) {
		if (!ask_device(i, &d))
			continue;
		note_text(META_DEVICE, d.args, 4, d.name, (uint32_t)strnlen(d.name, sizeof d.name));
		note_uuid(&d);
		predict_uuid_add(&all, d.uuid);
		if (!*first.name)
			first = d;
		alike = alike && same_kind(&first, &d);
	}
	if (*first.name)
		start_forecast(&first, alike, all.all);
}

/* --- contexts ------------------------------------------------------------------------------ */

void note_cuCtxDestroy(int result, void *context)
{
	if (!result)
		sample_context_gone((uintptr_t)context);
}

void note_cuDevicePrimaryCtxReset(int result, int device)
{
	if (!result)
		sample_device_gone(device);
}

/* The last to release it ends the context. */
void note_cuDevicePrimaryCtxRelease(int result, int device)
{
	unsigned flags;
	int active = 0;
	if (result || !hook_real[FN_cuDevicePrimaryCtxGetState] ||
		REAL(cuDevicePrimaryCtxGetState, int, unsigned *, int *)(device, &flags, &active))
		return;
	if (!active)
		sample_device_gone(device);
}

/* --- device times -------------------------------------------------------------------------- */

/* That and why times are sampled, since CUPTI gives none. */
static void note_instead(const char *why)
{
	static const char no_times[] = "no device times: ";
	static_assert(SAMPLE_DEFAULT == 64, "as the sentence says");
	char text[512] = "one launch in 64 is timed with events, as without CUPTI: ";
	const size_t at = strlen(text), no = sizeof no_times - 1;
	why += strncmp(why, no_times, no) ? 0 : no;
	strncpy(text + at, why, sizeof text - at - 1);
	process_note(text);
}

static void start_times(void)
{
	const uint32_t rate = process_sample_rate();
	const char *why = rate ? NULL : cupti_start(&hook_recorder, string_id);
	const bool can = (rate || why) && sample_start(rate ? rate : SAMPLE_DEFAULT);
	if (rate && !can)
		process_note("no device times: the driver lacks what sampling needs");
	else if (why && can)
		note_instead(why);
	else if (why)
		process_note(why);
}

/* Device times begin when the driver is there and before anything can run on it. */
void note_cuInit(int result, unsigned flags)
{
	static uint32_t started;
	if (result || !process_wants_devices() ||
		__atomic_exchange_n(&started, 1, __ATOMIC_RELAXED))
		return;
	note_devices();
	if (process_wants_gpu())
		start_times();
}

/* --- looking functions up ------------------------------------------------------------------ */

void note_cuGetProcAddress(
	int result, const char *symbol, void *pfn, int version, unsigned long long flags)
{
	void **answer = pfn;
	if (!result && answer && *answer && symbol)
		*answer = resolve_answer(*answer, symbol);
}

void note_cuGetProcAddress_v2(int result, const char *symbol, void *pfn, int version,
	unsigned long long flags, void *status)
{
	note_cuGetProcAddress(result, symbol, pfn, version, flags);
}

void note_forget(void)
{
	DROP(kernels);
	DROP(attributes);
	DROP(graphs);
	params_forget();
	forecast_forget();
	sample_forget();
	strings_forget();
	operator_forget();
	python_forget();
}
