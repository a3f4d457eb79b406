/* Writes each call as a line of text. */
#include "hook/meta/trace_text.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "event/decode.h"
#include "event/schema.h"
#include "hook/core/call.h"
#include "hook/core/config.h"
#include "hook/meta/kernels.h"
#include "record/sandbox.h"

#define LINE_BYTES 4096u

static struct schema schema;

static long open_text(int flags)
{
	return sys(openat, AT_FDCWD, config_get()->path,
		flags | O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
}

/* Once; a forked child has its parent's. */
static bool read_schema(void)
{
	if (schema.fn_count)
		return true;
	const size_t need = schema_need(schema_text, schema_text_bytes);
	const long at =
		sys(mmap, NULL, need, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(at))
		return false;
	struct arena arena = { .base = (char *)at, .size = need };
	return schema_parse(&schema, &arena, schema_text, schema_text_bytes) == 0;
}

void text_start(void)
{
	const struct config *c = config_get();
	if (c->keep != KEEP_LINES)
		return;
	hook_recorder.scratch = true;
	hook_recorder.pid = (uint32_t)sys(getpid);
	store_relaxed(&hook_hot.tsc, true);
	atomic_fetch_or_explicit(&hook_hot.listen, LISTEN_TEXT, memory_order_relaxed);
	const long fd = open_text(O_CREAT);
	if (sys_failed(fd))
		return;
	sys(close, fd);
	if (read_schema())
		process_control_set(c->control & ~(CONTROL_QUERY_COUNT | CONTROL_MORE));
}

static const char *name_of(void *context, uint64_t handle, uint64_t ticks, size_t *ret_bytes)
{
	const char *name = kernel_name(handle);
	*ret_bytes = name ? strlen(name) : 0;
	return name;
}

/* "[PID.TID] " */
static size_t put_ids(char *to)
{
	char digits[10];
	size_t at = 0;
	const uint32_t ids[] = { hook_recorder.pid, hook_self.tid };
	for (int i = 0; i < 2; i++) {
		to[at++] = i ? '.' : '[';
		int n = 0;
		for (uint32_t v = ids[i]; v || !n; v /= 10)
			digits[n++] = (char)('0' + v % 10);
		while (n)
			to[at++] = digits[--n];
	}
	to[at++] = ']';
	to[at++] = ' ';
	return at;
}

void text_print(const struct record *r)
{
	char line[LINE_BYTES];
	if (sandbox_is_closed(NULL))
		return;
	const struct decoder decoder = {
		.schema = &schema,
		.kernel_name = name_of,
	};
	size_t n = put_ids(line);
	n += decode_record(&decoder, r, line + n, sizeof line - n - 1);
	line[n++] = '\n';
	const long fd = open_text(0);
	if (sys_failed(fd))
		return;
	sys(write, fd, line, n);
	sys(close, fd);
}
