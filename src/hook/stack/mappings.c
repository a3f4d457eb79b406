/*
 * Writes which file's code is mapped at which address, so that return addresses can be named later.
 *
 * It reads /proc/self/maps with system calls alone, at the first call, at the end and in between.
 * In between it reads behind calls that keep a stack and before runtime calls, as often as pace.h
 * says. One thread reads at a time, into memory of this file. Nothing is written twice.
 */
#include "hook/stack/stack.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "hook/core/lock.h"
#include "hook/core/metadata.h"
#include "hook/core/strings.h"
#include "hook/core/pages.h"
#include "hook/core/process.h"
#include "hook/core/slots.h"
#include "hook/stack/pace.h"
#include "record/sandbox.h"

#define PAGE      4096u
#define SEEN      4096u
#define WINDOW    32u
#define BUILD_ID  64u
#define LINE_MOST (PAGE + 128u)

static _Atomic uint64_t seen[SEEN] OWN_PAGES; /* of mappings that stand in the trace */
static const struct slots slots = { seen, SEEN, WINDOW, memory_order_relaxed,
	memory_order_relaxed };
static char text[2 * PAGE + LINE_MOST] OWN_PAGES; /* of who is busy */
static struct lock busy;
static uint64_t pause;                        /* ticks from one look to the next */
static bool found;                            /* something new, in the look that is under way */
static _Atomic uintptr_t main_from, main_end; /* of the main thread's stack; 0: not known */
static uintptr_t main_begun; /* where that stood when the program began; 0: not known */

static int own_pid(void)
{
	return hook_recorder.pid ? (int)hook_recorder.pid : (int)sys(getpid);
}

uint32_t read_mapped(void *to, uintptr_t from, uint32_t bytes)
{
	struct iovec parts[16];
	const struct iovec local = { to, bytes };
	unsigned n = 0;
	/* A page each: the kernel stops at the first part of which something is missing. */
	for (uint32_t at = 0; at < bytes && n < sizeof parts / sizeof *parts; n++) {
		const uint32_t page = PAGE - (uint32_t)((from + at) % PAGE);
		const uint32_t take = page < bytes - at ? page : bytes - at;
		parts[n] = (struct iovec){ (void *)(from + at), take };
		at += take;
	}
	const long got = sys(process_vm_readv, own_pid(), &local, 1, parts, n, 0);
	return sys_failed(got) ? 0 : (uint32_t)got;
}

bool mappings_main_stack(uintptr_t at, uintptr_t *ret_end)
{
	*ret_end = load_relaxed(&main_end);
	return at < *ret_end && at >= load_relaxed(&main_from);
}

static const char *find_note(const char *at, uint32_t left, uint32_t *ret_bytes)
{
	Elf64_Nhdr note;
	while (left >= sizeof note) {
		memcpy(&note, at, sizeof note);
		if (note.n_namesz > left || note.n_descsz > left)
			return NULL;
		const uint32_t name = (note.n_namesz + 3) & ~3u, desc = (note.n_descsz + 3) & ~3u;
		if (sizeof note + name + desc > left)
			return NULL;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
			!memcmp(at + sizeof note, "GNU", 4)) {
			*ret_bytes = note.n_descsz < BUILD_ID ? note.n_descsz : BUILD_ID;
			return at + sizeof note + name;
		}
		at += sizeof note + name + desc;
		left -= (uint32_t)sizeof note + name + desc;
	}
	return NULL;
}

/* The build ID of the file whose beginning is mapped at `base`: most have it in their first page.
 */
static uint32_t read_build_id(uintptr_t base, char to[BUILD_ID])
{
	Elf64_Ehdr head;
	char *const page = text + PAGE + LINE_MOST;
	const uint32_t got = base ? read_mapped(page, base, PAGE) : 0;
	if (got < sizeof head)
		return 0;
	memcpy(&head, page, sizeof head);
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(Elf64_Phdr))
		return 0;
	for (uint32_t i = 0; i < head.e_phnum; i++) {
		Elf64_Phdr part;
		const uint64_t at = head.e_phoff + i * sizeof part;
		if (at > got || got - at < sizeof part)
			return 0;
		memcpy(&part, page + at, sizeof part);
		if (part.p_type != PT_NOTE || part.p_offset > got ||
			part.p_filesz > got - part.p_offset)
			continue;
		uint32_t bytes;
		const char *id = find_note(page + part.p_offset, (uint32_t)part.p_filesz, &bytes);
		if (id) {
			memcpy(to, id, bytes);
			return bytes;
		}
	}
	return 0;
}

struct mapping {
	uint64_t from, end, offset, inode;
	bool runs; /* may be executed */
	const char *path;
	uint32_t path_bytes;
};

static const char *hex(const char *at, const char *end, uint64_t *ret)
{
	*ret = 0;
	for (; at < end; at++) {
		const char c = *at;
		const int digit = c >= '0' && c <= '9'   ? c - '0'
				  : c >= 'a' && c <= 'f' ? c - 'a' + 10
							 : -1;
		if (digit < 0)
			break;
		*ret = *ret << 4 | (uint64_t)digit;
	}
	return at;
}

static const char *skip(const char *at, const char *end, char c)
{
	while (at < end && *at != c)
		at++;
	while (at < end && *at == c)
		at++;
	return at;
}

/* "from-end rwxp offset device inode   path" */
static bool parse_line(const char *at, const char *end, struct mapping *ret)
{
	struct mapping m;
	at = hex(at, end, &m.from);
	if (at == end || *at != '-')
		return false;
	at = hex(at + 1, end, &m.end);
	if (end - at < 6)
		return false;
	m.runs = at[3] == 'x';
	at = hex(at + 6, end, &m.offset);
	at = skip(at + (at < end), end, ' '); /* the device */
	for (m.inode = 0; at < end && *at >= '0' && *at <= '9'; at++)
		m.inode = m.inode * 10 + (uint64_t)(*at - '0');
	while (at < end && *at == ' ')
		at++;
	m.path = at;
	m.path_bytes = (uint32_t)(end - at);
	*ret = m;
	return true;
}

static uint64_t key_of(const struct mapping *m)
{
	const uint64_t words[] = { m->from, m->end, m->offset, m->inode };
	return string_hash(words, sizeof words, 0) | 1;
}

static void write_mapping(const struct mapping *m, uintptr_t base)
{
	char id[BUILD_ID];
	bool new;
	const uint64_t key = key_of(m);
	if (slots_claim(slots, (uint32_t)(key >> 32), key, &new) == SLOTS_NONE || !new)
		return;
	found = true;
	const uint32_t bytes = read_build_id(base, id);
	struct record *r = meta_begin(META_MAPPING, 4, bytes + m->path_bytes);
	if (!r)
		return;
	const uint64_t args[] = { m->from, m->end, m->offset, bytes };
	memcpy(r->arg, args, sizeof args);
	memcpy(r->arg + 4, id, bytes);
	memcpy((char *)(r->arg + 4) + bytes, m->path, m->path_bytes);
	record_commit(r, META_MAPPING);
}

static void take_line(const struct mapping *m, struct mapping *head)
{
	static const char stack[] = "[stack]";
	if (m->path_bytes == sizeof stack - 1 && !memcmp(m->path, stack, sizeof stack - 1)) {
		const bool begun = main_begun > m->from && main_begun < m->end;
		store_relaxed(&main_from, m->from);
		store_relaxed(&main_end, begun ? main_begun : m->end);
	}
	if (m->inode && !m->offset)
		*head = *m;
	if (m->runs && m->inode && m->path_bytes && *m->path == '/')
		write_mapping(m, head->inode == m->inode ? head->from : 0);
}

/* Takes the buffer line by line; the bytes that are left for the next time. */
static uint32_t take_lines(uint32_t bytes, struct mapping *head)
{
	const char *at = text, *const end = text + bytes, *line;
	struct mapping m;
	for (; (line = memchr(at, '\n', (size_t)(end - at))); at = line + 1)
		if (parse_line(at, line, &m))
			take_line(&m, head);
	const uint32_t rest = (uint32_t)(end - at);
	if (rest >= LINE_MOST)
		return 0; /* no line is that long */
	memmove(text, at, rest);
	return rest;
}

#define START_STACK 28 /* the field of /proc/self/stat */

/* Above that are the program's arguments and its environment, which nobody has called from. */
static void find_main_begin(void)
{
	const long fd = sys(openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return;
	const long got = sys(read, fd, text, PAGE - 1);
	sys(close, fd);
	text[got > 0 ? got : 0] = 0;
	const char *at = strrchr(text, ')'); /* behind the name, which may hold anything */
	for (int field = 2; at && field < START_STACK; field++) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	for (main_begun = 0; at && *at >= '0' && *at <= '9'; at++)
		main_begun = main_begun * 10 + (uintptr_t)(*at - '0');
}

static void read_maps(void)
{
	struct mapping head = { 0 };
	const long fd = sys(openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	uint32_t rest = 0;
	if (sys_failed(fd))
		return;
	for (long got; (got = sys(read, fd, text + rest, PAGE)) > 0;)
		rest = take_lines(rest + (uint32_t)got, &head);
	sys(close, fd);
}

void mappings_look(uint64_t ticks, bool now)
{
	const uint64_t due = load_relaxed(&hook_hot.look);
	if (!now && (!due || ticks < due))
		return;
	if (!lock_try(&busy))
		return;
	const uint64_t before = clock_now();
	found = false;
	if (!sandbox_is_closed(hook_recorder.header)) {
		if (!main_begun)
			find_main_begin();
		read_maps();
	}
	const uint64_t after = clock_now();
	pause = pace_next(pause, after - before, found);
	store_relaxed(&hook_hot.look, after + pause);
	lock_give(&busy);
}

void mappings_forget(void)
{
	DROP(seen);
	lock_forked(&busy);
	pause = 0;
	store_relaxed(&hook_hot.look, 0);
	store_relaxed(&main_from, 0);
	store_relaxed(&main_end, 0);
	main_begun = 0;
}
