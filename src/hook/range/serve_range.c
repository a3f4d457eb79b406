/*
 * weir serve describes its own work in a recording: each batch is a range of the thread that runs
 * it, so that calls and kernels inside belong to it, and each request is a record of its own.  The
 * server finds these functions by name (client/client.h).
 */
#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "hook/core/strings.h"
#include "hook/range/range.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void weir_hook_served_batch(const char *model, uint64_t number);
PUBLIC void weir_hook_served_batch_end(void);
PUBLIC void weir_hook_served_request(const struct served_request *request, const char *model);

static uint32_t scope(void)
{
	return string_id(SERVED_SCOPE, sizeof SERVED_SCOPE - 1);
}

/* Its end follows on the same thread, whether the range was kept or not. */
void weir_hook_served_batch(const char *model, uint64_t number)
{
	if (!ranges_are_kept())
		return;
	if (!ranges_wanted()) {
		range_push(NULL);
		return;
	}
	const struct range_text r = { .name = string_of(model),
		.scope = scope(),
		.kind = RANGE_ANNOTATION,
		.valid = RANGE_HAS_SEQUENCE,
		.sequence = number };
	range_push(&r);
}

void weir_hook_served_batch_end(void)
{
	if (ranges_are_kept())
		range_pop(scope());
}

/* model NULL: it named none that is served. */
void weir_hook_served_request(const struct served_request *request, const char *model)
{
	if (!ranges_are_kept() || !ranges_wanted())
		return;
	struct writer *w = writer_of_requests(&hook_recorder);
	struct served_request *to = w ? writer_reserve(&hook_recorder, w, sizeof *to / 8) : NULL;
	if (!to)
		return;
	memcpy(to, request, offsetof(struct served_request, model));
	to->model = string_of(model);
	to->rows = request->rows;
	to->batch_rows = request->batch_rows;
	to->class = request->class;
	store_release(shared(&to->outcome), request->outcome);
	writer_unmark(w);
}
