/*
 * Records without a preload: the driver loads this library because CUDA_INJECTION64_PATH names it.
 * CUPTI then reports driver calls, at about 100 ns a call more than a wrapper costs. Runtime calls,
 * cuInit and everything before it are not seen.
 */
#include <dlfcn.h>

#include "hook/core/call.h"
#include "hook/core/hook_parts.h"
#include "hook/core/metadata.h"
#include "hook/core/resolve.h"

/* From cupti_callbacks.h, as published. */
enum { DOMAIN_DRIVER = 1, SITE_ENTER = 0 };

struct cupti_call {
	int site;
	const char *function;
	const void *params;
	void *result;
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *kept; /* from enter to exit of one call */
	uint32_t correlation;
};

typedef void cupti_callback(void *user, int domain, uint32_t id, const struct cupti_call *call);

static struct {
	int (*subscribe)(void **ret_subscriber, cupti_callback *callback, void *user);
	int (*enable_domain)(uint32_t on, void *subscriber, int domain);
	int (*callback_name)(int domain, uint32_t id, const char **ret_name);
} cupti;

#define CALLBACKS 2048u
#define NO_CALL   0xffffu
static uint16_t fn_by_callback[CALLBACKS]; /* 0: not asked yet */

static __thread bool inside __attribute__((tls_model("initial-exec")));

static enum fn fn_of_callback(uint32_t id)
{
	const char *name = NULL;
	if (id >= CALLBACKS)
		return FN_NONE;
	if (!fn_by_callback[id]) {
		enum fn fn = FN_NONE;
		if (!cupti.callback_name(DOMAIN_DRIVER, id, &name) && name)
			fn = fn_of_name(name);
		fn_by_callback[id] = fn && fn < FN_DRIVER_END ? (uint16_t)fn : NO_CALL;
	}
	return fn_by_callback[id] == NO_CALL ? FN_NONE : fn_by_callback[id];
}

/* The notes that follow a call ask the driver, and CUPTI tells of those questions as well. */
static void on_call(void *user, int domain, uint32_t id, const struct cupti_call *call)
{
	if (inside)
		return;
	if (call->site == SITE_ENTER) {
		*call->kept = clock_now();
		return;
	}
	const enum fn fn = fn_of_callback(id);
	const uint32_t want =
		fn ? wanted(1u << fn_classes[fn] | CONTROL_QUERY_COUNT | fn_stack_bits[fn]) : 0;
	const int result = call->result ? *(const int *)call->result : 0;
	if (!want)
		return;
	inside = true;
	const bool query = fn_classes[fn] == CLASS_query;
	if (query && want & CONTROL_QUERY_COUNT && (!result || result == NOT_READY)) {
		call_entered();
		count_query(fn);
		call_left();
	} else if (want & (1u << fn_classes[fn] | CONTROL_COUNT))
		hook_above.injected[fn](
			call->params, *call->kept, result, want & ~CONTROL_QUERY_COUNT);
	inside = false;
}

static bool find_cupti(void)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so" };
	void *library = NULL;
	for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return false;
	cupti.subscribe =
		(int (*)(void **, cupti_callback *, void *))dlsym(library, "cuptiSubscribe");
	cupti.enable_domain = (int (*)(uint32_t, void *, int))dlsym(library, "cuptiEnableDomain");
	cupti.callback_name =
		(int (*)(int, uint32_t, const char **))dlsym(library, "cuptiGetCallbackName");
	return cupti.subscribe && cupti.enable_domain && cupti.callback_name;
}

__attribute__((visibility("default"))) int InitializeInjection(void);

/*
 * Called by the driver inside cuInit, so nobody's call is being recorded.  Always 1: whatever
 * goes wrong here, the program runs.
 */
int InitializeInjection(void)
{
	void *subscriber = NULL;
	process_start();
	if (resolve_is_first()) /* preloaded as well: calls come through the wrappers already */
		return 1;
	if (!resolve_driver() || !find_cupti())
		meta_message(
			"loaded by CUDA_INJECTION64_PATH, but libcupti.so can't be found: nothing is "
			"recorded. Put it into LD_LIBRARY_PATH, or preload libweir.so");
	else if (cupti.subscribe(&subscriber, on_call, NULL) ||
		 cupti.enable_domain(1, subscriber, DOMAIN_DRIVER))
		meta_message(
			"loaded by CUDA_INJECTION64_PATH, but another tool holds CUPTI: nothing is "
			"recorded. Preload libweir.so");
	else
		meta_message(
			"loaded by CUDA_INJECTION64_PATH: driver calls after cuInit are recorded "
			"through CUPTI, runtime calls are not");
	return 1;
}
