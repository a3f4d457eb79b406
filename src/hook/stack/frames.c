/*
 * Reads Python's frames from the interpreter's own structures, in the thread that made the call.
 *
 * The structures differ by version, so the package `weir` describes them (struct layout,
 * python/weir/stacks.py). It lets this library read a known chain and enables reading only if the
 * answer is that chain. The only call of the interpreter is PyGILState_GetThisThreadState, which
 * needs no lock. For all else the kernel says first whether the page is readable. A frame stays in
 * place while its thread is in this call.
 *
 * A code object lives while a frame runs it. Its name is written when it is first seen. Its
 * identity is checked each time, because another object may get the address later.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "hook/core/metadata.h"
#include "hook/core/strings.h"
#include "hook/core/pages.h"
#include "hook/core/process.h"
#include "hook/core/slots.h"
#include "hook/stack/stack.h"

#define PUBLIC __attribute__((visibility("default")))

#define CODES      (1u << 14)
#define FRAME      96  /* bytes of a frame that the fields are in … */
#define OBJECT     160 /* … of a code object … */
#define HEAD       48  /* … and of a text or bytes */
#define NAME_MOST  1024u
#define TABLE_MOST 32768u

/* Offsets, in the order of stacks.py; -1: this version has no such field. */
enum field {
	STATE_CFRAME, /* of the thread's state: where the frame is said … */
	CFRAME_FRAME, /* … there; -1: STATE_CFRAME is the frame itself */
	FRAME_CODE,
	FRAME_BEFORE,
	FRAME_AT,    /* the instruction */
	FRAME_ENTRY, /* a byte: C has called this one (3.11); -1 */
	FRAME_OWNER, /* a byte: from 3 on it is no frame of Python's but where C has called; -1 */
	CODE_FIRST,  /* the first instruction */
	CODE_LINE,
	CODE_FILE,
	CODE_NAME,
	CODE_TABLE,
	BYTES_SIZE,
	BYTES_DATA,
	TEXT_LENGTH,
	TEXT_STATE, /* bits 2..4 bytes of a character, bit 5 compact, bit 6 ASCII */
	TEXT_ASCII,
	TEXT_OTHER,
	FIELDS
};
#define OWNER_C 3

/* The largest offset that what is copied of an object has; others are only added to addresses. */
static const int32_t field_most[FIELDS] = {
	[STATE_CFRAME] = 4096,
	[CFRAME_FRAME] = 4096,
	[FRAME_CODE] = FRAME - 8,
	[FRAME_BEFORE] = FRAME - 8,
	[FRAME_AT] = FRAME - 8,
	[FRAME_ENTRY] = FRAME - 8,
	[FRAME_OWNER] = FRAME - 8,
	[CODE_FIRST] = 4096,
	[CODE_LINE] = OBJECT - 8,
	[CODE_FILE] = OBJECT - 8,
	[CODE_NAME] = OBJECT - 8,
	[CODE_TABLE] = OBJECT - 8,
	[BYTES_SIZE] = HEAD - 8,
	[BYTES_DATA] = 4096,
	[TEXT_LENGTH] = HEAD - 8,
	[TEXT_STATE] = HEAD - 8,
	[TEXT_ASCII] = 4096,
	[TEXT_OTHER] = 4096,
};

/* python/weir finds these functions by name. */
typedef void *get_state(void);
PUBLIC int weir_frames_layout(const int32_t *offsets, uint32_t count, get_state *state);
PUBLIC uint32_t weir_frames_chain(uint64_t *codes, uint64_t *at, uint32_t most);
PUBLIC uint32_t weir_frames_code(uint64_t code, uint64_t *ret, char *text, uint32_t most);
PUBLIC void weir_frames_switch(int on);

static int32_t offset_of[FIELDS];
static get_state *state_of_thread;
static _Atomic bool is_on;

static _Atomic uint64_t codes[CODES] OWN_PAGES;
static const struct slots slots = { codes, CODES, 64, memory_order_relaxed, memory_order_relaxed };

#define PAGE   4096u
#define PROBED 4u

/* Pages that can be read: looked at in this call, and what a frame holds stays while it does. */
struct probe {
	uintptr_t pages[PROBED];
	uint32_t next;
};

/* The kernel reads the mask before it finds that there is no such way of setting it. */
static bool is_readable(struct probe *p, uintptr_t page)
{
	for (uint32_t i = 0; i < PROBED; i++)
		if (p->pages[i] == page)
			return true;
	if (sys(rt_sigprocmask, -1, page, NULL, 8) != -EINVAL)
		return false;
	p->pages[p->next++ % PROBED] = page;
	return true;
}

/* The bytes at that address, or NULL. */
static const char *read_at(struct probe *p, uintptr_t at, uint32_t bytes)
{
	const uintptr_t first = at & ~(uintptr_t)(PAGE - 1),
			last = (at + bytes - 1) & ~(uintptr_t)(PAGE - 1);
	if (at < PAGE || at + bytes < at || !is_readable(p, first) ||
		(last != first && !is_readable(p, last)))
		return NULL;
	return (const char *)at;
}

static uint64_t word_at(const char *object, enum field field)
{
	uint64_t word = 0;
	if (offset_of[field] >= 0)
		memcpy(&word, object + offset_of[field], sizeof word);
	return word;
}

static bool read_word(struct probe *p, uintptr_t at, uint64_t *ret)
{
	const char *from = read_at(p, at, sizeof *ret);
	if (from)
		memcpy(ret, from, sizeof *ret);
	return from;
}

struct frame {
	uint64_t code, at;
	bool entry; /* C has called it */
};

struct chain {
	struct probe probe;
	uint64_t next;
};

static bool chain_begin(struct chain *c)
{
	const uintptr_t state = state_of_thread ? (uintptr_t)state_of_thread() : 0;
	*c = (struct chain){ .next = 0 };
	if (!state || !read_word(&c->probe, state + (uintptr_t)offset_of[STATE_CFRAME], &c->next))
		return false;
	return offset_of[CFRAME_FRAME] < 0 || !c->next ||
	       read_word(&c->probe, c->next + (uintptr_t)offset_of[CFRAME_FRAME], &c->next);
}

static bool is_boundary(const char *frame)
{
	return offset_of[FRAME_OWNER] >= 0 && frame[offset_of[FRAME_OWNER]] >= OWNER_C;
}

/* The frame at hand, behind those that are none of Python's; NULL behind the last. */
static const char *frame_at_hand(struct chain *c)
{
	const char *at = read_at(&c->probe, c->next, FRAME);
	for (int i = 0; at && is_boundary(at) && i < 4; i++) {
		c->next = word_at(at, FRAME_BEFORE);
		at = read_at(&c->probe, c->next, FRAME);
	}
	return at;
}

/* The next frame: false behind the last. */
static bool chain_next(struct chain *c, struct frame *ret)
{
	const char *at = frame_at_hand(c);
	if (!at)
		return false;
	ret->code = word_at(at, FRAME_CODE) & ~(uint64_t)7; /* low bits: tags, since 3.14 */
	ret->at = word_at(at, FRAME_AT);
	ret->entry = offset_of[FRAME_ENTRY] >= 0 && at[offset_of[FRAME_ENTRY]];
	c->next = word_at(at, FRAME_BEFORE);
	if (offset_of[FRAME_OWNER] >= 0 && offset_of[FRAME_ENTRY] < 0) {
		const char *before = read_at(&c->probe, c->next, FRAME);
		ret->entry = !before || is_boundary(before);
	}
	return true;
}

struct identity {
	uint64_t code, line, file, name, table;
};

static struct identity identity_of(uint64_t code, const char *object)
{
	return (struct identity){ code, (uint32_t)word_at(object, CODE_LINE),
		word_at(object, CODE_FILE), word_at(object, CODE_NAME),
		word_at(object, CODE_TABLE) };
}

struct text {
	uint64_t at;
	uint32_t bytes, width; /* of a character */
};

static struct text text_of(uint64_t object)
{
	char head[HEAD];
	struct text t = { 0 };
	uint32_t state;
	if (!object || read_mapped(head, object, sizeof head) != sizeof head)
		return t;
	memcpy(&state, head + offset_of[TEXT_STATE], sizeof state);
	const uint64_t length = word_at(head, TEXT_LENGTH);
	const bool ascii = state >> 6 & 1;
	t.width = state >> 2 & 7;
	if (!(state >> 5 & 1) || (t.width != 1 && t.width != 2 && t.width != 4) ||
		length > NAME_MOST)
		return (struct text){ 0 };
	t.at = object + (uint64_t)offset_of[ascii ? TEXT_ASCII : TEXT_OTHER];
	t.bytes = (uint32_t)length * t.width;
	return t;
}

static struct text table_of(uint64_t object)
{
	char head[HEAD];
	if (!object || read_mapped(head, object, sizeof head) != sizeof head)
		return (struct text){ 0 };
	const uint64_t size = word_at(head, BYTES_SIZE);
	return (struct text){ object + (uint64_t)offset_of[BYTES_DATA],
		(uint32_t)(size < TABLE_MOST ? size : TABLE_MOST), 1 };
}

struct code_text {
	struct text part[3]; /* file, name, table of lines */
	uint32_t bytes;
};

static struct code_text code_text_of(const struct identity *i)
{
	struct code_text c = { { text_of(i->file), text_of(i->name), table_of(i->table) }, 0 };
	for (int k = 0; k < 3; k++)
		c.bytes += c.part[k].bytes;
	return c;
}

static void put_text(const struct code_text *c, char *to)
{
	for (int k = 0; k < 3; k++) {
		for (uint32_t at = 0; at < c->part[k].bytes;) {
			const uint32_t got =
				read_mapped(to + at, c->part[k].at + at, c->part[k].bytes - at);
			if (!got)
				break;
			at += got;
		}
		to += c->part[k].bytes;
	}
}

/* arg[1] and arg[2] of META_CODE. */
static void put_args(const struct identity *i, const struct code_text *c, uint64_t to[2])
{
	to[0] = (i->line & 0xffffff) | (uint64_t)c->part[0].width << 32 |
		(uint64_t)c->part[1].width << 40;
	to[1] = c->part[0].bytes | (uint64_t)c->part[1].bytes << 32;
}

static void write_code(uint32_t number, const struct identity *i)
{
	const struct code_text c = code_text_of(i);
	struct record *r = meta_begin(META_CODE, 3, c.bytes);
	if (!r)
		return;
	r->arg[0] = number;
	put_args(i, &c, r->arg + 1);
	put_text(&c, (char *)(r->arg + 3));
	record_commit(r, META_CODE);
}

/* The code's number; 0: there is no room for more. */
static uint32_t number_of(const struct identity *i)
{
	bool new;
	const uint64_t key = string_hash(i, sizeof *i, 0) | 1;
	const uint32_t at = slots_claim(slots, (uint32_t)(key >> 32), key, &new);
	if (at == SLOTS_NONE)
		return 0;
	if (new)
		write_code(at + 1, i);
	return at + 1;
}

static uint64_t word_of_frame(const struct frame *f, const char *object)
{
	const struct identity i = identity_of(f->code, object);
	const uint64_t first = f->code + (uint64_t)offset_of[CODE_FIRST];
	const uint64_t at = f->at >= first && f->at - first < STACK_PYTHON_AT ? f->at - first : 0;
	return number_of(&i) | at << 32 | (f->entry ? STACK_PYTHON_ENTRY : 0);
}

uint32_t frames_most(void)
{
	return load_acquire(&is_on) ? PYTHON_FRAMES : 0;
}

uint32_t frames_read(uint64_t *to, uint32_t most, bool *ret_more)
{
	struct chain c;
	struct frame f;
	uint32_t n = 0;
	*ret_more = false;
	if (!chain_begin(&c))
		return 0;
	for (const char *object; n < most && chain_next(&c, &f); n++) {
		object = read_at(&c.probe, f.code, OBJECT);
		if (!object)
			break;
		to[n] = word_of_frame(&f, object);
	}
	*ret_more = n == most && c.next;
	return n;
}

void frames_forget(void)
{
	DROP(codes);
}

int weir_frames_layout(const int32_t *offsets, uint32_t count, get_state *state)
{
	store_release(&is_on, false);
	if (count != FIELDS || !state)
		return 0;
	for (uint32_t i = 0; i < FIELDS; i++)
		if (offsets[i] < -1 || offsets[i] > field_most[i])
			return 0;
	memcpy(offset_of, offsets, sizeof offset_of);
	state_of_thread = state;
	return 1;
}

uint32_t weir_frames_chain(uint64_t *found, uint64_t *at, uint32_t most)
{
	struct chain c;
	struct frame f;
	uint32_t n = 0;
	if (!chain_begin(&c))
		return 0;
	for (; n < most && chain_next(&c, &f); n++) {
		found[n] = f.code;
		at[n] = f.at - f.code - (uint64_t)offset_of[CODE_FIRST];
	}
	return n;
}

/* The fields of META_CODE for a code object: three words and the text; how many bytes that is. */
uint32_t weir_frames_code(uint64_t code, uint64_t *ret, char *to, uint32_t most)
{
	char object[OBJECT];
	if (read_mapped(object, code, sizeof object) != sizeof object)
		return 0;
	const struct identity i = identity_of(code, object);
	const struct code_text c = code_text_of(&i);
	if (c.bytes > most)
		return 0;
	put_args(&i, &c, ret);
	put_text(&c, to);
	return c.bytes;
}

void weir_frames_switch(int on)
{
	store_release(&is_on, on != 0);
}
