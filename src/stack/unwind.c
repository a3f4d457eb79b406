/* Unwinds pieces of stacks. */
#include "stack/unwind.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef WEIR_LIBDW

#include "stack/libdw.h"
#include "stack/lines.h"

#define INJECTED "libweir.so"
#define TID      1 /* libdwfl wants one thread; it is always the one of the piece at hand */

struct module { /* a file that is mapped */
	uint64_t from, end;
	const char *name;
	bool injected;
};

struct place { /* of the frames of an address, in pool */
	size_t first;
	uint32_t count;
};

struct unwinder {
	const struct libdw *dw;
	struct stacks *s;
	Dwfl *dwfl;
	struct line_finder lines;
	ARRAY(struct module) modules; /* by address, apart */
	struct map known;             /* a return address: its frames … */
	ARRAY(struct place) places;
	ARRAY(uint32_t) pool; /* … here */

	/* The piece at hand. */
	const struct stack_piece *piece;
	struct unwound *to;
	bool missed;  /* memory above the piece was asked for */
	bool outside; /* the last frame is of no file that could be read … */
	bool unread;  /* … though of one */
	bool inner;   /* only frames of the injected library until now */
	int failed;
};

/* A regular file alone: opening anything else may wait, or do something. */
static int open_file(const char *path)
{
	struct stat st;
	const int fd = *path == '/' ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* By what the addresses of a file are moved where this part of it is mapped. */
static bool find_bias(
	const struct libdw *dw, Elf *elf, const struct code_mapping *m, uint64_t *ret_bias)
{
	size_t count;
	if (dw->elf_getphdrnum(elf, &count))
		return false;
	Elf64_Phdr *part = dw->elf64_getphdr(elf);
	for (size_t i = 0; part && i < count; i++, part++) {
		const uint64_t start = part->p_offset & ~4095ull;
		if (part->p_type != PT_LOAD || m->offset < start ||
			m->offset >= part->p_offset + part->p_filesz)
			continue;
		*ret_bias = m->from - (part->p_vaddr - part->p_offset + m->offset);
		return true;
	}
	return false;
}

static bool is_same_file(const struct libdw *dw, Elf *elf, const struct code_mapping *m)
{
	const void *id;
	const ssize_t bytes = dw->dwelf_elf_gnu_build_id(elf, &id);
	return !m->build_id_bytes ||
	       (bytes == (ssize_t)m->build_id_bytes && !memcmp(id, m->build_id, m->build_id_bytes));
}

static bool overlaps(const struct unwinder *u, const struct code_mapping *m)
{
	for (size_t i = 0; i < u->modules.n; i++)
		if (m->from < u->modules.v[i].end && u->modules.v[i].from < m->end)
			return true;
	return false;
}

/* If two files were mapped at one address, one after the other, the first counts. */
static void report_file(struct unwinder *u, const struct code_mapping *m)
{
	const struct libdw *dw = u->dw;
	uint64_t bias;
	if (overlaps(u, m))
		return;
	struct module *to = array_push(&u->modules);
	const char *name = stacks_text(u->s, basename(m->path), strlen(basename(m->path)));
	*to = (struct module){ m->from, m->end, name, !strcmp(name, INJECTED) };
	const int fd = open_file(m->path);
	Elf *elf = fd < 0 ? NULL : dw->elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && is_same_file(dw, elf, m) && find_bias(dw, elf, m, &bias))
		dw->dwfl_report_elf(u->dwfl, name, m->path, -1, bias, true);
	dw->elf_end(elf);
	if (fd >= 0)
		close(fd);
}

static int report_files(struct unwinder *u, const struct pieces *p, uint32_t process)
{
	u->dw->dwfl_report_begin(u->dwfl);
	for (size_t i = 0; i < p->mappings.n; i++)
		if (p->mappings.v[i].process == process)
			report_file(u, &p->mappings.v[i]);
	int e = 0;
	if (u->dw->dwfl_report_end(u->dwfl, NULL, NULL) && !e)
		e = -EIO;
	return e;
}

static const struct module *module_at(const struct unwinder *u, uint64_t address)
{
	for (size_t i = 0; i < u->modules.n; i++)
		if (address >= u->modules.v[i].from && address < u->modules.v[i].end)
			return &u->modules.v[i];
	return NULL;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	if (*thread)
		return 0;
	*thread = arg;
	return TID;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	*thread = arg;
	return tid == TID;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *arg)
{
	struct unwinder *u = arg;
	const struct stack_piece *p = u->piece;
	const uint64_t from = p->registers[STACK_SP], at = address - from;
	if (address < from || at >= p->count || p->count - at < sizeof *ret) {
		u->missed |= address >= from;
		return false;
	}
	memcpy(ret, p->bytes + at, sizeof *ret);
	return true;
}

/* DWARF's numbers: rax rdx rcx rbx rsi rdi rbp rsp r8 … r15, return address. */
static bool set_x86_64(const struct libdw *dw, Dwfl_Thread *thread, const uint64_t *r)
{
	const Dwarf_Word regs[] = { [3] = r[STACK_SAVED],
		[6] = r[STACK_FP],
		[7] = r[STACK_SP],
		[12] = r[STACK_SAVED + 1],
		[13] = r[STACK_SAVED + 2],
		[14] = r[STACK_SAVED + 3],
		[15] = r[STACK_SAVED + 4],
		[16] = r[STACK_PC] };
	return dw->dwfl_thread_state_registers(thread, 0, sizeof regs / sizeof *regs, regs);
}

/* x0 … x30, sp. */
static bool set_aarch64(const struct libdw *dw, Dwfl_Thread *thread, const uint64_t *r)
{
	const Dwarf_Word regs[] = { [19] = r[STACK_SAVED + 1],
		[20] = r[STACK_SAVED + 2],
		[21] = r[STACK_SAVED + 3],
		[22] = r[STACK_SAVED + 4],
		[29] = r[STACK_FP],
		[30] = r[STACK_SAVED],
		[31] = r[STACK_SP] };
	dw->dwfl_thread_state_register_pc(thread, r[STACK_PC]);
	return dw->dwfl_thread_state_registers(thread, 0, sizeof regs / sizeof *regs, regs);
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct unwinder *u = arg;
	const uint64_t *r = u->piece->registers;
	return r[STACK_COUNTS] & STACK_AARCH64 ? set_aarch64(u->dw, thread, r)
					       : set_x86_64(u->dw, thread, r);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/* The frames of a return address, innermost first, kept from the first time on. */
static int find_frames(struct unwinder *u, uint64_t pc, const struct module *m, uint32_t *ret_place)
{
	uint32_t *slot = map_get(&u->known, MAP_KEY(pc));
	uint32_t frames[LINES_INLINED];
	*ret_place = *slot;
	if (*slot != MAP_NONE)
		return 0;
	const int n = line_find(&u->lines, u->s, pc, m ? m->name : "", frames);
	if (n < 0)
		return n;
	struct place *to = array_push(&u->places);
	array_reserve(&u->pool, (size_t)n);
	*to = (struct place){ .first = u->pool.n, .count = (uint32_t)n };
	memcpy(u->pool.v + u->pool.n, frames, (size_t)n * sizeof *frames);
	u->pool.n += (size_t)n;
	*ret_place = *slot = (uint32_t)(u->places.n - 1);
	return 0;
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct unwinder *u = arg;
	Dwarf_Addr pc;
	bool activation;
	uint32_t place;
	if (!u->dw->dwfl_frame_pc(frame, &pc, &activation) || !pc)
		return DWARF_CB_ABORT;
	const uint64_t call = activation ? pc : pc - 1;
	const struct module *m = module_at(u, call);
	u->outside = !u->dw->dwfl_addrmodule(u->dwfl, call);
	u->inner = u->inner && m && m->injected;
	if (u->inner)
		return DWARF_CB_OK;
	u->failed = find_frames(u, call, m, &place);
	if (u->failed)
		return DWARF_CB_ABORT;
	const uint32_t count = u->places.v[place].count;
	if (count > u->to->room - u->to->count)
		return DWARF_CB_ABORT;
	memcpy(u->to->frames + u->to->count, u->pool.v + u->places.v[place].first,
		count * sizeof *u->to->frames);
	u->to->count += count;
	/* If a file can't be read, libdw guesses the caller, from the frame pointer. */
	u->unread = u->outside && m;
	return u->unread ? DWARF_CB_ABORT : DWARF_CB_OK;
}

int unwinder_run(struct unwinder *u, const struct stack_piece *piece, struct unwound *to)
{
	u->piece = piece;
	u->to = to;
	u->missed = u->outside = u->unread = false;
	u->inner = true;
	u->failed = 0;
	to->count = 0;
	const int done = u->dw->dwfl_getthread_frames(u->dwfl, TID, take_frame, u);
	const bool full = done == DWARF_CB_ABORT && !u->unread;
	to->end = u->missed || full ? STACK_CUT : u->outside ? STACK_UNKNOWN : STACK_WHOLE;
	return u->failed;
}

/* Files are reported with their paths: there is nothing to be found. */
static int find_elf(
	Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
	return -1;
}

static int start(struct unwinder *u, const struct pieces *p, uint32_t process)
{
	static Dwfl_Callbacks callbacks = { .find_elf = find_elf };
	u->dw->elf_version(EV_CURRENT);
	callbacks.find_debuginfo = u->dw->dwfl_standard_find_debuginfo;
	u->dwfl = u->dw->dwfl_begin(&callbacks);
	if (!u->dwfl)
		return -EIO;
	u->lines = (struct line_finder){ .dw = u->dw, .dwfl = u->dwfl };
	const int e = report_files(u, p, process);
	/* Fails when no file is left that could be read: then no piece has a caller. */
	if (!e)
		u->dw->dwfl_attach_state(u->dwfl, NULL, TID, &thread_callbacks, u);
	return e;
}

struct unwinder *unwinder_new(
	const struct pieces *p, uint32_t process, struct stacks *s, char *why, size_t why_size)
{
	const char *missing;
	const struct libdw *dw = libdw_open(&missing);
	if (!dw) {
		snprintf(why, why_size, "%s", missing);
		return NULL;
	}
	struct unwinder *u = xcalloc(1, sizeof *u);
	u->dw = dw;
	u->s = s;
	if (!start(u, p, process))
		return u;
	unwinder_free(u);
	return NULL;
}

void unwinder_free(struct unwinder *u)
{
	if (!u)
		return;
	if (u->dwfl)
		u->dw->dwfl_end(u->dwfl);
	array_free(&u->modules, &u->places, &u->pool);
	map_fini(&u->known);
	free(u);
}

#else /* built without elfutils' headers */

struct unwinder *unwinder_new(
	const struct pieces *p, uint32_t process, struct stacks *s, char *why, size_t why_size)
{
	snprintf(why, why_size, "%s",
		"this Weir was built without elfutils' headers (Debian: libdw-dev)");
	return NULL;
}

void unwinder_free(struct unwinder *u)
{
}

int unwinder_run(struct unwinder *u, const struct stack_piece *piece, struct unwound *to)
{
	return -ENOSYS;
}

#endif
