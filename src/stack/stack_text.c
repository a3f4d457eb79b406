/* Stacks as people read them: see stacks.h. */
#include <string.h>

#include "base/bounded.h"
#include "stack/stacks.h"

#define PICKED_MOST 64u
#define PICKED_ALL  256u

/* Libraries whose frames say how a call came to CUDA, not who wanted it: their names begin so.
 */
static const char *const between[] = { "libcuda.so", "libcudart", "libweir", "libcupti",
	"libcublas", "libcudnn", "libc10_cuda", "libffi.so", "_ctypes.", "libpython", "libc.so",
	"ld-linux" };

/* CPython's own, where it is part of the program: functions of its interpreter. */
static bool is_interpreter(const struct stack_frame *f)
{
	return !strncmp(f->module, "python", 6) || !strncmp(f->function, "_Py", 3) ||
	       !strncmp(f->function, "Py_", 3);
}

static bool is_program(const struct stack_frame *f)
{
	if (f->kind == CALLER_PYTHON)
		return true;
	if (!*f->function || is_interpreter(f))
		return false;
	for (size_t i = 0; i < sizeof between / sizeof *between; i++)
		if (!strncmp(f->module, between[i], strlen(between[i])))
			return false;
	return strcmp(f->function, "_start") != 0;
}

/* A function of C++ without its arguments, which take a line of their own otherwise. */
static size_t name_bytes(const char *function)
{
	const char *open = strchr(function, '(');
	const bool anonymous = open && !strncmp(open, "(anonymous", 10);
	return open && open > function && !anonymous ? (size_t)(open - function) : strlen(function);
}

void stacks_frame_text(const struct stack_frame *f, char *to, size_t size)
{
	struct bounded b = { .to = to, .size = size };
	const char *function = *f->function ? f->function : "?";
	const size_t bytes = f->kind == CALLER_PYTHON ? strlen(function) : name_bytes(function);
	bounded_printf(&b, "%.*s", (int)(bytes < 80 ? bytes : 80), function);
	if (*f->file && f->line)
		bounded_printf(&b, " (%s:%u)", basename(f->file), f->line);
	else if (*f->file || *f->module)
		bounded_printf(&b, " (%s)", *f->file ? basename(f->file) : f->module);
	bounded_end(&b);
}

/* The place of Python's first frame among the program's; UINT32_MAX: there is none. */
static uint32_t first_of_python(const struct stacks *s, const struct stack_row *r)
{
	uint32_t before = 0;
	for (uint32_t i = 0; i < r->count; i++) {
		const struct stack_frame *f = stacks_frame(s, r, i);
		if (f->kind == CALLER_PYTHON)
			return before;
		before += is_program(f);
	}
	return UINT32_MAX;
}

/* A framework has many functions between Python and CUDA: a line of Python says more than the last
 * of them. */
uint32_t stacks_pick(
	const struct stacks *s, uint32_t row, const struct stack_frame **to, uint32_t most)
{
	const struct stack_row *r = &s->rows.v[row];
	const uint32_t python = first_of_python(s, r);
	const bool skips = python != UINT32_MAX && python >= most;
	uint32_t n = 0, at = 0;
	for (uint32_t i = 0; i < r->count && n < most; i++) {
		if (!is_program(stacks_frame(s, r, i)))
			continue;
		if (!skips || at < most / 2 || at >= python)
			to[n++] = stacks_frame(s, r, i);
		at++;
	}
	for (uint32_t i = 0; !n && i < r->count && i < most; i++)
		to[i] = stacks_frame(s, r, i);
	return n ? n : r->count < most ? r->count : most;
}

void stacks_compare(struct stacks *s)
{
	const struct stack_frame *f[PICKED_ALL];
	struct map seen = { 0 };
	for (size_t i = 0; i < s->rows.n; i++) {
		const uint32_t n = stacks_pick(s, (uint32_t)i, f, PICKED_ALL);
		uint32_t *slot = map_get(&seen, map_text_key((const char *)f, n * sizeof *f, n));
		if (*slot == MAP_NONE)
			*slot = (uint32_t)i;
		s->rows.v[i].like = *slot;
	}
	map_fini(&seen);
}

void stacks_put_json(struct json *j, const struct stack_frame *const *frames, uint32_t n)
{
	char text[512];
	json_begin_array(j, "stack");
	for (uint32_t i = 0; i < n; i++) {
		stacks_frame_text(frames[i], text, sizeof text);
		json_str(j, NULL, text);
	}
	json_end_array(j);
}

void stacks_row_text(const struct stacks *s, uint32_t row, uint32_t frames, char *to, size_t size)
{
	const struct stack_frame *f[PICKED_MOST];
	struct bounded b = { .to = to, .size = size };
	char text[256];
	const uint32_t most = MIN(frames, PICKED_MOST);
	const uint32_t n = stacks_pick(s, row, f, most);
	for (uint32_t i = 0; i < n; i++) {
		stacks_frame_text(f[i], text, sizeof text);
		bounded_printf(&b, "%s%s", i ? " < " : "", text);
	}
	if (!n)
		bounded_printf(&b, "(not known)");
	bounded_end(&b);
}
