/* Launches the kernels that hold best-effort streams on the device. */
#include "hook/sched/hold.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "hook/core/call.h"
#include "hook/core/own_calls.h"

#define PAGE      4096u
#define WAITED    256u  /* holds whose waiting is kept until somebody looks */
#define WAITED_NS 20000 /* less is what a hold costs when there is nothing to wait for */
#define MAPPED    3u    /* CU_MEMHOSTREGISTER_PORTABLE | _DEVICEMAP */

/* Holds of this process write here. */
struct hold_page {
	uint64_t ignored[SHARE_WORDS];   /* bits of `active` that a hold has waited for in vain */
	_Atomic uint64_t waited[WAITED]; /* ns, odd; 0: not yet */
};
_Static_assert(sizeof(struct hold_page) <= PAGE, "memory is registered by the page");

__asm__(".section .rodata\n.hidden hold_image\n.globl hold_image\nhold_image:\n"
	".incbin \"hook/sched/hold.ptx\"\n.byte 0\n.previous\n");
extern const char hold_image[];
_Static_assert(MODE_OPEN == 0 && MODE_BUDGET == 3 && SHARE_WORDS == 4, "as the kernel has them");

static bool driver_can(void)
{
	static const enum fn needed[] = { FN_cuModuleLoadData, FN_cuModuleUnload,
		FN_cuModuleGetFunction, FN_cuFuncGetAttribute, FN_cuMemHostRegister_v2,
		FN_cuMemHostUnregister, FN_cuMemHostGetDevicePointer_v2, FN_cuLaunchKernel,
		FN_cuLaunchKernel_ptsz, FN_cuCtxGetCurrent };
	return ALL_FOUND(needed);
}

static bool register_memory(void *what, size_t bytes, uint64_t *ret_at)
{
	return what && !REAL(cuMemHostRegister_v2)(what, bytes, MAPPED) &&
	       !REAL(cuMemHostGetDevicePointer_v2)(ret_at, what, 0);
}

static void *mapped(long address)
{
	return sys_failed(address) ? NULL : (void *)address;
}

/* Maps the file a second time, and a page, for holds alone, since a forked child may lack memory
 * that a driver has registered: the file a second time, and a page. */
static void map(struct hold *h, const struct share_file *file)
{
	h->file = mapped(sys(mremap, file, 0, share_mapped_bytes(), MREMAP_MAYMOVE));
	h->page = mapped(
		sys(mmap, NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

static void unmap(void *what, size_t bytes, bool is_registered)
{
	if (is_registered)
		REAL(cuMemHostUnregister)(what);
	if (what)
		sys(munmap, what, bytes);
}

/* With modules loaded lazily a function comes to the device when it is first asked about. */
static bool load(struct hold *h)
{
	int registers;
	return !REAL(cuModuleLoadData)(&h->module, (void *)hold_image) &&
	       !REAL(cuModuleGetFunction)(&h->function, h->module, "weir_hold") &&
	       !REAL(cuFuncGetAttribute)(&registers, 4, h->function);
}

static void unmake(struct hold *h)
{
	if (h->module)
		REAL(cuModuleUnload)(h->module);
	unmap(h->file, share_mapped_bytes(), h->file_at);
	unmap(h->page, PAGE, h->page_at);
	*h = (struct hold){ .state = HOLD_MAKING };
}

static enum hold_state make(struct hold *h, const struct hold_of *of)
{
	h->context = current_context();
	if (!h->context)
		return HOLD_NONE;
	map(h, of->file);
	if (load(h) && register_memory(h->file, share_mapped_bytes(), &h->file_at) &&
		register_memory(h->page, PAGE, &h->page_at))
		return HOLD_READY;
	unmake(h);
	return HOLD_IMPOSSIBLE;
}

static bool change_state(struct hold *h, uint32_t from)
{
	return replace_if(&h->state, &from, HOLD_MAKING, acquire, relaxed);
}

void hold_prepare(struct hold *h, const struct hold_of *of)
{
	struct own_calls own;
	if (!load_relaxed(&of->slot->grant.hold_ns) || !of->slot->who.under_mps ||
		load_relaxed(&hook_hot.captures) > 0 || load_relaxed(&h->state) != HOLD_NONE ||
		!change_state(h, HOLD_NONE))
		return;
	own_calls_begin(&own);
	const enum hold_state made = driver_can() ? make(h, of) : HOLD_IMPOSSIBLE;
	own_calls_end(&own);
	store_release(&h->state, made);
}

bool hold_is_ready(const struct hold *h, const struct share_slot *slot)
{
	return load_relaxed(&slot->grant.hold_ns) && load_acquire(&h->state) == HOLD_READY &&
	       current_context() == h->context;
}

static int launch(struct hold *h, const struct hold_of *of, void *stream, int per_thread)
{
	const uint32_t i = add_relaxed(&h->put, 1) % WAITED;
#define AT(what) (h->file_at + (uint64_t)((const char *)(what) - (const char *)of->file))
	uint64_t active = AT(of->device->active), mode = AT(&of->slot->grant.mode),
		 open = AT(&of->file->arbiter.open),
		 ignored = h->page_at + offsetof(struct hold_page, ignored),
		 waited = h->page_at + offsetof(struct hold_page, waited[i]),
		 limit = of->max_wait_ns;
#undef AT
	void *args[] = { &active, &mode, &open, &ignored, &waited, &limit };
	return REAL_OF(cuLaunchKernel, per_thread)(
		h->function, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL);
}

static uint64_t requests_of(const struct hold_of *of)
{
	return load_relaxed(&of->device->requests) + 1;
}

/* Behind so much work, and when a request has begun that none of the stream's holds waits for. */
static bool is_due(const struct hold_of *of, const struct hold_stream *s, uint64_t ns)
{
	return s->ns + ns > load_relaxed(&of->slot->grant.hold_ns) ||
	       (share_any(of->device->active) && s->requests != requests_of(of));
}

bool hold_put(struct hold *h, const struct hold_of *of, struct hold_stream *s, uint64_t ns,
	void *stream, int per_thread)
{
	struct own_calls own;
	if (!is_due(of, s, ns)) {
		s->ns += ns;
		return true;
	}
	hold_collect(h, of);
	share_end_lingering(of->file, (uint32_t)(of->device - of->file->devices), monotonic_ns());
	own_calls_begin(&own);
	const int e = launch(h, of, stream, per_thread);
	own_calls_end(&own);
	*s = (struct hold_stream){ ns, requests_of(of) };
	if (e)
		store_release(&h->state, HOLD_IMPOSSIBLE);
	return !e;
}

void hold_collect(struct hold *h, const struct hold_of *of)
{
	if (load_acquire(&h->state) != HOLD_READY)
		return;
	for (uint32_t i = 0; i < WAITED; i++) {
		if (!load_relaxed(&h->page->waited[i]))
			continue;
		const uint64_t ns =
			atomic_exchange_explicit(&h->page->waited[i], 0, memory_order_relaxed);
		add_relaxed(&h->ended, ns > 0);
		if (ns >= WAITED_NS)
			share_count_wait(&of->slot->counts, ns, ns >= of->max_wait_ns);
	}
}

/* Nothing is taken from under a hold: unless all are known to have ended, what they use stays, and
 * no more are launched. */
void hold_leave(struct hold *h, const struct hold_of *of)
{
	struct own_calls own;
	hold_collect(h, of);
	if (!change_state(h, HOLD_READY))
		return;
	const bool goes =
		load_relaxed(&h->put) == load_relaxed(&h->ended) && current_context() == h->context;
	own_calls_begin(&own);
	if (goes)
		unmake(h);
	own_calls_end(&own);
	store_release(&h->state, goes ? HOLD_NONE : HOLD_IMPOSSIBLE);
}
