/* Records as text: see decode.h.  All output goes through struct bounded, which never runs over. */
#include "event/decode.h"

#include <string.h>

#include "base/bounded.h"
#include "base/search.h"

#include "event/args.h"

#define STRING_KEPT 504u /* bytes of a string argument that a record keeps */

static void put_hex(struct bounded *t, uint64_t value)
{
	bounded_put(t, "0x");
	bounded_number(t, value, 16, 1);
}

/* Six decimals, enough to recognise an argument; large values as powers of two. */
static void put_float(struct bounded *t, uint32_t bits)
{
	float f;
	memcpy(&f, &bits, sizeof f);
	if (f != f || f - f != 0) {
		bounded_put(t, f != f ? "nan" : f < 0 ? "-inf" : "inf");
		return;
	}
	if (f < 0)
		bounded_char(t, '-');
	double v = f < 0 ? -(double)f : (double)f;
	int power = 0;
	for (; v >= 1e12; v /= 2)
		power++;
	const uint64_t micro = (uint64_t)(v * 1e6 + 0.5) % 1000000u;
	bounded_decimal(t, (uint64_t)(v + 0.5e-6));
	if (micro) {
		bounded_char(t, '.');
		uint64_t rest = micro;
		for (uint64_t unit = 100000; rest; rest %= unit, unit /= 10)
			bounded_char(t, (char)('0' + rest / unit));
	}
	if (power) {
		bounded_put(t, "*2^");
		bounded_signed(t, power);
	}
}

static void put_quoted_char(struct bounded *t, unsigned char c)
{
	if (c == '"' || c == '\\') {
		bounded_char(t, '\\');
		bounded_char(t, (char)c);
	} else if (c == '\n') {
		bounded_put(t, "\\n");
	} else if (c < 0x20 || c == 0x7f) {
		bounded_put(t, "\\x");
		bounded_number(t, c, 16, 2);
	} else {
		bounded_char(t, (char)c);
	}
}

static void put_quoted(struct bounded *t, const char *s, size_t n, bool cut)
{
	bounded_char(t, '"');
	for (size_t i = 0; i < n; i++)
		put_quoted_char(t, (unsigned char)s[i]);
	bounded_put(t, cut ? "\"..." : "\"");
}

static void put_triple(struct bounded *t, uint64_t x, uint64_t y, uint64_t z)
{
	bounded_char(t, '(');
	bounded_decimal(t, x);
	bounded_char(t, ',');
	bounded_decimal(t, y);
	bounded_char(t, ',');
	bounded_decimal(t, z);
	bounded_char(t, ')');
}

static int enum_order(const struct enum_name *e, const char *type, int64_t value)
{
	const int c = strcmp(e->type, type);
	if (c)
		return c;
	return e->value < value ? -1 : e->value > value;
}

/* The name of a value, or NULL. */
static const char *decode_enum(const char *type, int64_t value)
{
	const size_t at =
		SEARCH(i, 0, enum_names_count, enum_order(&enum_names[i], type, value) < 0);
	const struct enum_name *e = at < enum_names_count ? &enum_names[at] : NULL;
	return e && !enum_order(e, type, value) ? e->name : NULL;
}

const char *decode_result(const struct schema_fn *fn, unsigned result)
{
	const bool runtime = fn && fn->api == API_RUNTIME;
	return decode_enum(runtime ? "cudaError" : "CUresult", (int64_t)result);
}

static void put_enum(struct bounded *t, const char *type, uint64_t word)
{
	const char *name = decode_enum(type, (int32_t)word);
	if (name)
		bounded_put(t, name);
	else
		bounded_signed(t, (int32_t)word);
}

static size_t words_after(const struct record *r)
{
	return r->words > RECORD_WORDS ? r->words - RECORD_WORDS : 0;
}

/* The bytes that a record keeps of a string whose word says `length`. */
static size_t string_kept(uint64_t length)
{
	if ((int64_t)length < 0)
		return 0;
	return length < STRING_KEPT ? (size_t)length : STRING_KEPT;
}

/* Strings stand one after the other behind the words, each padded to a word: the place of
 * argument `arg`'s. */
static size_t string_offset(const struct schema_fn *fn, unsigned arg, const struct record *r)
{
	size_t offset = fn->arg_words * sizeof(uint64_t);
	for (unsigned i = 0; i < arg; i++)
		if (fn->args[i].kind == ARG_STR && fn->args[i].first < words_after(r))
			offset += (string_kept(r->arg[fn->args[i].first]) + 7) & ~(size_t)7;
	return offset;
}

static void put_string(
	struct bounded *t, const struct schema_fn *fn, unsigned arg, const struct record *r)
{
	const uint64_t length = r->arg[fn->args[arg].first];
	const size_t room = words_after(r) * sizeof(uint64_t);
	const size_t offset = string_offset(fn, arg, r);
	if ((int64_t)length < 0) {
		bounded_put(t, "NULL");
		return;
	}
	size_t kept = string_kept(length);
	if (offset > room)
		kept = 0;
	else if (kept > room - offset)
		kept = room - offset;
	const bool cut = kept < length || (r->flags & RECORD_CUT && kept == STRING_KEPT);
	put_quoted(t, (const char *)r->arg + offset, kept, cut);
}

static void put_value(
	struct bounded *t, const struct schema_fn *fn, unsigned arg, const struct record *r)
{
	const struct schema_arg *a = &fn->args[arg];
	const uint64_t *word = r->arg + a->first;
	switch (a->kind) {
	case ARG_PTR:
		return put_hex(t, word[0]);
	case ARG_INT:
		return bounded_signed(t, (int64_t)word[0]);
	case ARG_UINT:
		return bounded_decimal(t, word[0]);
	case ARG_FLOAT:
		return put_float(t, (uint32_t)word[0]);
	case ARG_STR:
		return put_string(t, fn, arg, r);
	case ARG_DIM3:
		return put_triple(t, (uint32_t)word[0], word[0] >> 32, (uint32_t)word[1]);
	case ARG_EXTENT:
		return put_triple(t, word[0], word[1], word[2]);
	case ARG_LOC: /* struct { type; id; } */
		bounded_put(t, "{type=");
		bounded_signed(t, (int32_t)word[0]);
		bounded_put(t, ", id=");
		bounded_signed(t, (int32_t)(word[0] >> 32));
		return bounded_char(t, '}');
	case ARG_ENUM:
		return put_enum(t, a->type, word[0]);
	default:
		return bounded_put(t, "...");
	}
}

static void put_arg_value(
	struct bounded *t, const struct schema_fn *fn, unsigned arg, const struct record *r)
{
	const struct schema_arg *a = &fn->args[arg];
	if (a->kind == ARG_IPC || (size_t)a->first + a->words > words_after(r))
		bounded_put(t, "...");
	else if (a->out && arg < 32 && (r->aux >> arg & 1))
		bounded_char(t, '?');
	else
		put_value(t, fn, arg, r);
}

static void put_args(struct bounded *t, const struct schema_fn *fn, const struct record *r)
{
	for (unsigned i = 0; i < fn->arg_count; i++) {
		if (i)
			bounded_put(t, ", ");
		if (fn->args[i].out)
			bounded_char(t, '*');
		bounded_put(t, fn->args[i].name);
		bounded_char(t, '=');
		put_arg_value(t, fn, i, r);
	}
}

bool decode_shape(const struct record *r, struct launch_shape *ret_shape)
{
	if (words_after(r) < LAUNCH_WORDS)
		return false;
	const uint64_t xy = r->arg[LAUNCH_GRID_XY], zx = r->arg[LAUNCH_GRID_Z_BLOCK_X],
		       yz = r->arg[LAUNCH_BLOCK_YZ];
	*ret_shape = (struct launch_shape){
		.grid = { (uint32_t)xy, (uint32_t)(xy >> 32), (uint32_t)zx },
		.block = { (uint32_t)(zx >> 32), (uint32_t)yz, (uint32_t)(yz >> 32) },
	};
	return true;
}

/* Names are resolved for the end of a call: the hook may learn one during its first launch. */
static uint64_t end_of(const struct record *r)
{
	return r->ticks + (r->flags & RECORD_LONG ? (uint64_t)r->dur << 10 : r->dur);
}

static void put_kernel(struct bounded *t, const struct decoder *d, const struct record *r)
{
	size_t n = 0;
	const uint64_t handle = r->arg[LAUNCH_FUNCTION];
	const char *name =
		d->kernel_name ? d->kernel_name(d->context, handle, end_of(r), &n) : NULL;
	bounded_put(t, "f=");
	put_hex(t, handle);
	if (!name)
		return;
	bounded_put(t, " <");
	for (size_t i = 0; i < n; i++)
		bounded_char(t, (unsigned char)name[i] < 0x20 ? '?' : name[i]);
	bounded_char(t, '>');
}

static void put_cluster(struct bounded *t, const struct record *r)
{
	if (!(r->flags & RECORD_CLUSTER) || words_after(r) <= LAUNCH_CLUSTER)
		return;
	const uint64_t c = r->arg[LAUNCH_CLUSTER];
	if (c & 0xffffffffffffu) {
		bounded_put(t, ", cluster=");
		put_triple(t, c & 0xffff, c >> 16 & 0xffff, c >> 32 & 0xffff);
	}
	if (c >> 48 & 1)
		bounded_put(t, ", cooperative");
	if (c >> 49 & 1)
		bounded_put(t, ", programmatic");
	if (c >> 56) {
		bounded_put(t, ", attributes=");
		bounded_decimal(t, c >> 56);
	}
}

static void put_scalars(struct bounded *t, const struct record *r)
{
	struct launch_args a;
	if (!args_get(r, &a))
		return;
	bounded_put(t, ", args=(");
	for (uint32_t i = 0; i < a.kept; i++) {
		if (i)
			bounded_char(t, ',');
		if (a.value[i] >> 32)
			put_hex(t, a.value[i]);
		else
			bounded_decimal(t, a.value[i]);
	}
	bounded_put(t, a.scalars > a.kept ? ",...)" : ")");
}

static void put_launch(struct bounded *t, const struct decoder *d, const struct record *r)
{
	struct launch_shape s;
	if (!decode_shape(r, &s)) {
		bounded_put(t, "...");
		return;
	}
	put_kernel(t, d, r);
	bounded_put(t, ", grid=");
	put_triple(t, s.grid[0], s.grid[1], s.grid[2]);
	bounded_put(t, ", block=");
	put_triple(t, s.block[0], s.block[1], s.block[2]);
	bounded_put(t, ", shared=");
	bounded_decimal(t, r->aux);
	bounded_put(t, ", stream=");
	put_hex(t, r->arg[LAUNCH_STREAM]);
	put_cluster(t, r);
	put_scalars(t, r);
}

static void put_result(struct bounded *t, const struct schema_fn *fn, const struct record *r)
{
	bounded_put(t, ") = ");
	bounded_decimal(t, r->result);
	const char *name = r->result ? decode_result(fn, r->result) : NULL;
	if (name) {
		bounded_char(t, ' ');
		bounded_put(t, name);
	}
	if (r->flags & RECORD_CAPTURED)
		bounded_put(t, " [captured]");
}

size_t decode_record(const struct decoder *d, const struct record *r, char *buf, size_t size)
{
	struct bounded t = { .to = buf, .size = size };
	const struct schema_fn *fn = schema_find(d->schema, r->fn);
	if (fn) {
		bounded_put(&t, fn->name);
		bounded_char(&t, '(');
	} else {
		bounded_put(&t, "function ");
		bounded_decimal(&t, r->fn);
		bounded_put(&t, "(...");
	}
	if (fn && fn->launch_layout)
		put_launch(&t, d, r);
	else if (fn)
		put_args(&t, fn, r);
	put_result(&t, fn, r);
	bounded_end(&t);
	return t.used;
}

size_t decode_arg(
	const struct schema_fn *fn, unsigned arg, const struct record *r, char *buf, size_t size)
{
	struct bounded t = { .to = buf, .size = size };
	put_arg_value(&t, fn, arg, r);
	bounded_end(&t);
	return t.used;
}
