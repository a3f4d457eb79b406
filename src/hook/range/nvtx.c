/*
 * Receives a program's NVTX ranges.
 *
 * NVTX is a header. Its first call loads the library in NVTX_INJECTION64_PATH and calls
 * InitializeInjectionNvtx2() there with its table of functions, which we fill in. Each shared
 * object with the header does this for itself. Layouts and numbers follow nvtxTypes.h and
 * nvToolsExt.h of CUDA 13.0 (NVTX 3).
 *
 * A program keeps handles of domains and registered strings. Ours point to a copy of the text,
 * because a forked child writes it again into its own part of the trace.
 */
#include <string.h>
#include <sys/mman.h>
#include <wchar.h>

#include "base/atomic.h"
#include "base/bounded.h"
#include "base/sys.h"
#include "base/text.h"
#include "hook/core/call.h"
#include "hook/range/capture.h"
#include "hook/range/operator.h"
#include "hook/range/range.h"
#include "hook/range/request_range.h"
#include "hook/core/strings.h"

#define PUBLIC __attribute__((visibility("default")))

#define KEPT_BYTES (16u << 20) /* of address space; only what is used becomes memory */
#define KEPT_MARK  0x52544557u
#define WIDE_MOST  1024u

struct kept {
	_Atomic uint32_t mark;
	uint32_t bytes;
	_Atomic uint32_t pid; /* of the process in whose part of the trace it has `id` */
	uint32_t id;
	char text[];
};

static _Atomic(char *) kept_base;
static _Atomic uint64_t kept_used;

/* Texts that are registered again and again get one place; a full table costs only room. */
#define AGAIN 4096u
static _Atomic uint32_t again[AGAIN]; /* offset + 1; 0 free */

static char *keep_map(void)
{
	char *base = load_acquire(&kept_base);
	if (base)
		return base;
	const long at = sys(mmap, NULL, KEPT_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_failed(at))
		return NULL;
	if (replace_if(&kept_base, &base, (char *)at, acq_rel, acquire))
		return (char *)at;
	sys(munmap, at, KEPT_BYTES);
	return base;
}

static struct kept *keep_new(char *base, const char *text, size_t bytes)
{
	const uint64_t need = (sizeof(struct kept) + bytes + 7) & ~7ull;
	if (atomic_load_explicit(&kept_used, memory_order_seq_cst) + need > KEPT_BYTES)
		return NULL;
	const uint64_t at = atomic_fetch_add_explicit(&kept_used, need, memory_order_seq_cst);
	if (at + need > KEPT_BYTES)
		return NULL;
	struct kept *k = (struct kept *)(base + at);
	k->bytes = (uint32_t)bytes;
	memcpy(k->text, text, bytes);
	store_release(&k->mark, KEPT_MARK);
	return k;
}

static struct kept *keep(const char *text, size_t bytes)
{
	char *const base = keep_map();
	uint32_t at = (uint32_t)string_hash(text, bytes, 2);
	for (int i = 0; base && i < 16; i++, at++) {
		uint32_t offset = atomic_load_explicit(&again[at % AGAIN], memory_order_seq_cst);
		if (!offset) {
			struct kept *new = keep_new(base, text, bytes);
			if (new)
				replace_if(&again[at % AGAIN], &offset,
					(uint32_t)((char *)new - base) + 1, seq_cst, seq_cst);
			return new;
		}
		struct kept *k = (struct kept *)(base + offset - 1);
		if (k->bytes == bytes && !memcmp(k->text, text, bytes))
			return k;
	}
	return base ? keep_new(base, text, bytes) : NULL;
}

/* A handle may be anything: NULL for one that we did not give out. */
static struct kept *kept_of_handle(const void *handle)
{
	const uintptr_t base = (uintptr_t)load_acquire(&kept_base);
	const uintptr_t offset = (uintptr_t)handle - base,
			used = atomic_load_explicit(&kept_used, memory_order_seq_cst);
	struct kept *k = (struct kept *)(base + offset);
	if (!base || !handle || offset % 8 || used < sizeof *k || offset > used - sizeof *k ||
		load_relaxed(&k->mark) != KEPT_MARK)
		return NULL;
	return k;
}

static uint32_t id_of_handle(const void *handle)
{
	struct kept *k = kept_of_handle(handle);
	if (!k)
		return 0;
	if (load_acquire(&k->pid) != hook_recorder.pid) {
		k->id = string_id(k->text, k->bytes);
		store_release(&k->pid, hook_recorder.pid);
	}
	return k->id;
}

/* wchar_t is a code point here.  Cut at WIDE_MOST bytes; what is no code point becomes '?'. */
static size_t narrow(const wchar_t *wide, char text[WIDE_MOST])
{
	size_t n = 0;
	for (; *wide && n + 4 <= WIDE_MOST; wide++) {
		const uint32_t c = (uint32_t)*wide;
		const bool wrong = c > 0x10ffff || (c >= 0xd800 && c < 0xe000);
		n += utf8_put(text + n, wrong ? '?' : c);
	}
	return n;
}

/* nvtxEventAttributes_t; version 1 lacks nothing that is read here. */
struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved;
	uint64_t payload; /* a union of the types */
	int32_t message_type;
	const void *message;
};
_Static_assert(offsetof(struct attributes, payload) == 24, "nvToolsExt.h");
_Static_assert(offsetof(struct attributes, message) == 40, "nvToolsExt.h");

enum { MESSAGE_ASCII = 1, MESSAGE_UNICODE = 2, MESSAGE_REGISTERED = 3, COLOR_ARGB = 1 };
enum { PAYLOAD_U64 = 1, PAYLOAD_I64, PAYLOAD_DOUBLE, PAYLOAD_U32, PAYLOAD_I32, PAYLOAD_FLOAT };

static void name_ascii(const char *text, struct range_text *r)
{
	const size_t bytes = text ? strnlen(text, STRING_MOST) : 0;
	if (!text)
		return;
	/* Most messages have no comma, and no operator is without. */
	if (memchr(text, ',', bytes) && operator_parse(text, bytes, range_args_around(), r))
		return;
	r->name = string_id(text, bytes);
}

static void name_wide(const wchar_t *wide, struct range_text *r)
{
	char text[WIDE_MOST];
	if (wide)
		r->name = string_id(text, narrow(wide, text));
}

/* Six digits behind the point; what can't be told that way stands as its bits. */
static void put_real(struct bounded *b, double value, uint64_t bits)
{
	const double size = value < 0 ? -value : value;
	if (!(size < 1e15)) {
		bounded_put(b, "\"0x");
		bounded_number(b, bits, 16, 16);
		bounded_put(b, "\"");
		return;
	}
	const uint64_t whole = (uint64_t)size; /* apart: as one number they need 70 bits */
	const uint64_t millionths = (uint64_t)((size - (double)whole) * 1e6 + 0.5);
	if (value < 0)
		bounded_put(b, "-");
	bounded_number(b, whole + millionths / 1000000, 10, 1);
	bounded_put(b, ".");
	bounded_number(b, millionths % 1000000, 10, 6);
}

static void put_payload(struct bounded *b, const struct attributes *a)
{
	double real;
	float small;
	switch (a->payload_type) {
	case PAYLOAD_I64:
		bounded_signed(b, (int64_t)a->payload);
		break;
	case PAYLOAD_I32:
		bounded_signed(b, (int32_t)a->payload);
		break;
	case PAYLOAD_DOUBLE:
		memcpy(&real, &a->payload, sizeof real);
		put_real(b, real, a->payload);
		break;
	case PAYLOAD_FLOAT:
		memcpy(&small, &a->payload, sizeof small);
		put_real(b, (double)small, (uint32_t)a->payload);
		break;
	default:
		bounded_number(b,
			a->payload_type == PAYLOAD_U32 ? (uint32_t)a->payload : a->payload, 10, 1);
	}
}

static void put_args(struct bounded *b, const struct attributes *a, bool payload)
{
	bounded_put(b, "{");
	if (a->category) {
		bounded_put(b, "\"category\":");
		bounded_number(b, a->category, 10, 1);
	}
	if (a->color_type == COLOR_ARGB) {
		bounded_put(b, b->used > 1 ? ",\"color\":\"#" : "\"color\":\"#");
		bounded_number(b, a->color, 16, 8);
		bounded_put(b, "\"");
	}
	if (payload) {
		bounded_put(b, b->used > 1 ? ",\"payload\":" : "\"payload\":");
		put_payload(b, a);
	}
	bounded_put(b, "}");
}

/* Category and colour repeat themselves; payloads do not, and would fill the table. */
static uint32_t args_of(const struct attributes *a)
{
	const bool payload = a->payload_type >= PAYLOAD_U64 && a->payload_type <= PAYLOAD_FLOAT;
	const uint32_t key[] = { a->category, a->color_type == COLOR_ARGB ? a->color : 0,
		a->color_type == COLOR_ARGB };
	char text[160];
	struct bounded b = BOUNDED(text);
	uint32_t id;
	if (!payload && !a->category && a->color_type != COLOR_ARGB)
		return 0;
	if (!payload && !string_claim(string_hash(key, sizeof key, 3), &id))
		return id;
	put_args(&b, a, payload);
	if (payload)
		return string_once(text, b.used);
	string_write(id, text, b.used);
	return id;
}

static void describe(const struct attributes *a, const void *domain, struct range_text *r)
{
	r->scope = id_of_handle(domain);
	if (!a)
		return;
	r->args = args_of(a);
	if (a->message_type == MESSAGE_ASCII)
		name_ascii(a->message, r);
	else if (a->message_type == MESSAGE_UNICODE)
		name_wide(a->message, r);
	else if (a->message_type == MESSAGE_REGISTERED)
		r->name = id_of_handle(a->message);
}

typedef bool name_is(const char *text, size_t bytes);

static bool message_is(const struct attributes *a, name_is *is)
{
	char text[WIDE_MOST];
	const struct kept *k = NULL;
	if (a && a->message_type == MESSAGE_REGISTERED)
		k = kept_of_handle(a->message);
	if (k || !a || !a->message)
		return k && is(k->text, k->bytes);
	if (a->message_type == MESSAGE_ASCII)
		return is(a->message, strnlen(a->message, STRING_MOST));
	return a->message_type == MESSAGE_UNICODE && is(text, narrow(a->message, text));
}

static bool ranges_are_watched(void)
{
	return request_ranges_are_asked() || capture_ranges_are_asked();
}

/* Looks at a push that is about to be written. */
static void watch_push(const void *domain, const struct attributes *a)
{
	ranges_wanted(); /* opens the trace */
	if (request_ranges_are_asked())
		request_range_push(domain, message_is(a, request_range_is));
	if (capture_ranges_are_asked())
		capture_range_push(domain, message_is(a, capture_range_is));
}

static int domain_push(const void *domain, const struct attributes *a)
{
	struct range_text r = { .kind = RANGE_NVTX };
	if (ranges_are_watched())
		watch_push(domain, a);
	if (!ranges_wanted())
		return range_push(NULL);
	describe(a, domain, &r);
	return range_push(&r);
}

static int push(const struct attributes *a)
{
	return domain_push(NULL, a);
}

static int push_ascii(const char *text)
{
	return push(&(struct attributes){ .message_type = MESSAGE_ASCII, .message = text });
}

static int push_wide(const wchar_t *text)
{
	return push(&(struct attributes){ .message_type = MESSAGE_UNICODE, .message = text });
}

static int domain_pop(const void *domain)
{
	if (request_ranges_are_asked())
		request_range_pop(domain);
	const int level = range_pop(ranges_are_kept() ? id_of_handle(domain) : 0);
	if (capture_ranges_are_asked())
		capture_range_pop(domain);
	return level;
}

static int pop(void)
{
	return domain_pop(NULL);
}

static uint64_t start_span(const void *domain, const struct attributes *a)
{
	struct range_text r = { .kind = RANGE_NVTX_SPAN };
	if (!ranges_wanted())
		return 0;
	describe(a, domain, &r);
	return range_start(&r);
}

static uint64_t domain_start(const void *domain, const struct attributes *a)
{
	const bool captures =
		capture_ranges_are_asked() && ranges_are_kept() && message_is(a, capture_range_is);
	if (captures) {
		ranges_wanted(); /* opens the trace */
		capture_span_begin();
	}
	const uint64_t span = start_span(domain, a);
	if (captures)
		capture_span_began(span);
	return request_ranges_are_asked() && message_is(a, request_range_is)
		       ? request_range_start(span)
		       : span;
}

static uint64_t start(const struct attributes *a)
{
	return domain_start(NULL, a);
}

static uint64_t start_ascii(const char *text)
{
	return start(&(struct attributes){ .message_type = MESSAGE_ASCII, .message = text });
}

static uint64_t start_wide(const wchar_t *text)
{
	return start(&(struct attributes){ .message_type = MESSAGE_UNICODE, .message = text });
}

static void end(uint64_t id)
{
	const uint64_t span = request_ranges_are_asked() ? request_range_stop(id) : id;
	if (ranges_are_kept())
		range_stop(span);
	if (capture_ranges_are_asked())
		capture_span_ended(span);
}

static void domain_end(const void *domain, uint64_t id)
{
	end(id);
}

static void domain_mark(const void *domain, const struct attributes *a)
{
	struct range_text r = { .kind = RANGE_NVTX_SPAN };
	if (!ranges_wanted())
		return;
	describe(a, domain, &r);
	range_mark(&r);
}

static void mark(const struct attributes *a)
{
	domain_mark(NULL, a);
}

static void mark_ascii(const char *text)
{
	mark(&(struct attributes){ .message_type = MESSAGE_ASCII, .message = text });
}

static void mark_wide(const wchar_t *text)
{
	mark(&(struct attributes){ .message_type = MESSAGE_UNICODE, .message = text });
}

static void *create_ascii(const char *text)
{
	return text ? keep(text, strnlen(text, STRING_MOST)) : NULL;
}

static void *create_wide(const wchar_t *wide)
{
	char text[WIDE_MOST];
	return wide ? keep(text, narrow(wide, text)) : NULL;
}

static void *register_ascii(const void *domain, const char *text)
{
	return create_ascii(text);
}

static void *register_wide(const void *domain, const wchar_t *text)
{
	return create_wide(text);
}

enum { TABLE_CALLBACKS = 1, MODULE_CORE = 1, MODULE_CORE2 = 5 };

typedef void any_fn(void);

struct callbacks { /* NvtxExportTableCallbacks */
	size_t size;
	int (*get_table)(int module, any_fn ***ret_table, unsigned *ret_size);
};

struct slot {
	unsigned id; /* NvtxCallbackIdCore, NvtxCallbackIdCore2 */
	void *function;
};

static const struct slot core[] = { { 1, mark }, { 2, mark_ascii }, { 3, mark_wide }, { 4, start },
	{ 5, start_ascii }, { 6, start_wide }, { 7, end }, { 8, push }, { 9, push_ascii },
	{ 10, push_wide }, { 11, pop } };
static const struct slot core2[] = { { 1, domain_mark }, { 2, domain_start }, { 3, domain_end },
	{ 4, domain_push }, { 5, domain_pop }, { 10, register_ascii }, { 11, register_wide },
	{ 12, create_ascii }, { 13, create_wide } };

static bool attach(const struct callbacks *nvtx, int module, const struct slot *slots, size_t count)
{
	any_fn **table = NULL;
	unsigned size = 0;
	if (!nvtx->get_table(module, &table, &size) || !table)
		return false;
	for (size_t i = 0; i < count; i++)
		if (slots[i].id < size && table[slots[i].id])
			memcpy(table[slots[i].id], &slots[i].function, sizeof(void *));
	return true;
}

#define COUNT(array) (sizeof array / sizeof *(array))

PUBLIC int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id));

/* 0: we are not interested, and NVTX costs the program nothing from here on. */
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id))
{
	const struct callbacks *nvtx =
		(ranges_are_kept() || request_ranges_are_asked()) && export_table
			? export_table(TABLE_CALLBACKS)
			: NULL;
	if (!nvtx || nvtx->size < sizeof *nvtx || !nvtx->get_table)
		return 0;
	const bool attached = attach(nvtx, MODULE_CORE, core, COUNT(core));
	return attach(nvtx, MODULE_CORE2, core2, COUNT(core2)) || attached;
}
