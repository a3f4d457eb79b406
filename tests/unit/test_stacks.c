/* Call stacks: this program's own stack, unwound from a piece of it; Python's frames between those
 * of C; lines from co_linetable; and both forms of the file. */
#include "unit.h"

#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bounded.h"
#include "base/cpu.h"
#include "hook/stack/pace.h"
#include "maker.h"
#include "stack/pieces.h"
#include "stack/stacks.h"
#include "trace/pack.h"

#define RAW    "stacks.weir"
#define PACKED "stacks.packed.weir"
#define PIECE  8192u
#define PID    77u

static uint64_t words[STACK_WORDS + PIECE / 8 + 8];

/* The bytes between variables are part of it, which sanitizers forbid to read: the kernel copies.
 * */
static __attribute__((noinline)) void take_piece(uint32_t bytes)
{
	struct iovec to = { words + STACK_WORDS, bytes }, from = { .iov_len = bytes };
	cpu_registers(words);
	words[STACK_COUNTS] = CPU_STACK;
	from.iov_base = (void *)words[STACK_SP];
	/* If the environment is small, there is less of the stack above. */
	const ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	assert_true(n > 0 && n <= (ssize_t)bytes);
	memset((char *)to.iov_base + n, 0, bytes - (size_t)n);
}

static __attribute__((noinline)) void inner_function(uint32_t bytes)
{
	take_piece(bytes);
	__asm__ volatile("" : : : "memory"); /* no tail call */
}

static __attribute__((noinline)) void outer_function(uint32_t bytes)
{
	inner_function(bytes);
	__asm__ volatile("" : : : "memory");
}

struct build_id {
	char bytes[BUILD_ID_MOST];
	uint32_t count;
};

/* For dl_iterate_phdr(), which begins with this program. */
static int take_build_id(struct dl_phdr_info *file, size_t size, void *to)
{
	struct build_id *id = to;
	for (unsigned i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &file->dlpi_phdr[i];
		const char *at = (const char *)(file->dlpi_addr + part->p_vaddr);
		const char *end = at + (part->p_type == PT_NOTE ? part->p_filesz : 0);
		while (at < end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *text = at + sizeof *note + (note->n_namesz + 3) / 4 * 4;
			if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= sizeof id->bytes) {
				id->count = note->n_descsz;
				memcpy(id->bytes, text, id->count);
			}
			at = text + (note->n_descsz + 3) / 4 * 4;
		}
	}
	return 1;
}

/* The mappings of this program's files, as the injected library writes them, but with a build id
 * for those of `own` alone. */
static void put_mappings(struct maker *m, int meta, const char *own, const struct build_id *id)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	assert_non_null(maps);
	while (fgets(line, sizeof line, maps)) {
		uint64_t args[4] = { 0 };
		int path = 0;
		char flags[8];
		sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &args[0],
			&args[1], flags, &args[2], &path);
		line[strcspn(line, "\n")] = 0;
		if (flags[2] != 'x' || line[path] != '/')
			continue;
		char text[sizeof id->bytes + sizeof line];
		args[3] = strcmp(line + path, own) ? 0 : id->count;
		memcpy(text, id->bytes, args[3]);
		const uint32_t bytes = (uint32_t)(args[3] + strlen(line + path));
		memcpy(text + args[3], line + path, bytes - args[3]);
		maker_meta(m, meta, META_MAPPING, 1000000, 4, args, text, bytes, bytes);
	}
	fclose(maps);
}

static void put_piece(struct maker *m, int thread, uint64_t ticks, uint32_t bytes)
{
	const uint32_t args =
		STACK_WORDS + bytes / 8 + (uint32_t)(words[STACK_COUNTS] & UINT16_MAX);
	maker_put(m, thread,
		(struct record){ .ticks = ticks,
			.dur = 50,
			.fn = FN_ALLOC,
			.words = (uint16_t)(RECORD_WORDS + args),
			.aux = bytes },
		words);
}

static struct trace *open_trace(const char *path)
{
	struct trace *t;
	struct error err = { "" };
	if (trace_open(path, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static void load(const char *path, struct stacks *s)
{
	struct trace *t = open_trace(path);
	assert_int_equal(stacks_load(t, s, NULL), 0);
	trace_close(t);
}

/* Without libdw there is nothing to unwind with. */
static bool can_unwind(const struct stacks *s)
{
	if (s->waiting)
		print_message("%s\n", s->without);
	return !s->waiting;
}

static void make_own(uint32_t bytes)
{
	struct maker *m = maker_new(RAW, maker_schema, TRACE_GRAIN);
	const int meta = maker_thread(m, CHUNK_META, PID, 0, ""),
		  thread = maker_thread(m, CHUNK_STACKS, PID, PID, "main");
	put_mappings(m, meta, "", &(struct build_id){ .count = 0 });
	outer_function(bytes);
	put_piece(m, thread, 1000100, bytes);
	inner_function(bytes);
	put_piece(m, thread, 1000300, bytes);
	put_piece(m, thread, 1000500, bytes);
	maker_finish(m, 2000000, false);
}

static uint32_t find_function(const struct stacks *s, uint32_t row, const char *name)
{
	for (uint32_t i = 0; i < s->rows.v[row].count; i++)
		if (!strcmp(stacks_frame(s, &s->rows.v[row], i)->function, name))
			return i;
	return UINT32_MAX;
}

static void own_stack_is_unwound_to_main(void **state)
{
	struct stacks s;
	make_own(PIECE);
	load(RAW, &s);
	assert_int_equal(s.samples.n, 3);
	if (can_unwind(&s)) {
		const uint32_t row = s.samples.v[0].stack;
		const uint32_t inner = find_function(&s, row, "inner_function");
		assert_int_equal(find_function(&s, row, "take_piece"), inner - 1);
		assert_int_equal(find_function(&s, row, "outer_function"), inner + 1);
		assert_true(find_function(&s, row, "main") > inner + 1);
		assert_true(find_function(&s, row, "main") != UINT32_MAX);
		assert_int_equal(s.rows.v[row].end, STACK_WHOLE);
		assert_int_equal(s.cut + s.unknown, 0);
		/* Equal stacks are kept once. */
		assert_int_equal(s.rows.n, 2);
		assert_int_equal(s.samples.v[1].stack, s.samples.v[2].stack);
	}
	stacks_fini(&s);
}

/* A file may be replaced between two processes: at the same path and addresses, its build id alone
 * differs.  Of three such processes, those of `is_own` have the file that is there. */
static void try_build_ids(const bool is_own[3])
{
	struct maker *m = maker_new(RAW, maker_schema, TRACE_GRAIN);
	struct build_id id = { .count = 0 };
	struct stacks s;
	char own[4096] = "";
	dl_iterate_phdr(take_build_id, &id);
	assert_true(id.count > 0);
	assert_true(readlink("/proc/self/exe", own, sizeof own - 1) > 0);
	outer_function(PIECE);
	for (unsigned i = 0; i < 3; i++) {
		struct build_id of_process = id;
		of_process.bytes[id.count - 1] ^= (char)!is_own[i];
		put_mappings(m, maker_thread(m, CHUNK_META, PID + i, 0, ""), own, &of_process);
		put_piece(m, maker_thread(m, CHUNK_STACKS, PID + i, PID + i, ""), 1000100, PIECE);
	}
	maker_finish(m, 2000000, false);
	load(RAW, &s);
	assert_int_equal(s.samples.n, 3);
	for (unsigned i = 0; i < 3 && can_unwind(&s); i++) {
		assert_int_equal(s.samples.v[i].tid, PID + i);
		const uint32_t at = find_function(&s, s.samples.v[i].stack, "main");
		assert_int_equal(at != UINT32_MAX, is_own[i]);
	}
	stacks_fini(&s);
}

static void processes_share_no_file_with_another_build_id(void **state)
{
	try_build_ids((const bool[]){ true, false, true });
	try_build_ids((const bool[]){ false, true, false });
}

static void a_short_piece_is_said_to_be_cut(void **state)
{
	struct stacks s;
	make_own(96);
	load(RAW, &s);
	if (can_unwind(&s)) {
		assert_int_equal(s.rows.v[s.samples.v[0].stack].end, STACK_CUT);
		assert_int_equal(s.cut, 3);
		assert_int_equal(find_function(&s, s.samples.v[0].stack, "main"), UINT32_MAX);
	}
	stacks_fini(&s);
}

static void a_call_is_found_by_any_moment_in_it(void **state)
{
	struct stacks s;
	make_own(PIECE);
	load(RAW, &s);
	const uint32_t process = s.samples.v[0].process;
	assert_int_equal(stacks_find(&s, process, PID, 1000099), STACK_NONE);
	assert_int_equal(stacks_find(&s, process, PID, 1000100), s.samples.v[0].stack);
	assert_int_equal(stacks_find(&s, process, PID, 1000150), s.samples.v[0].stack);
	assert_int_equal(stacks_find(&s, process, PID, 1000151), STACK_NONE);
	assert_int_equal(stacks_find(&s, process, PID + 1, 1000100), STACK_NONE);
	stacks_fini(&s);
}

static void packing_keeps_stacks_and_leaves_pieces_out(void **state)
{
	struct stacks raw, packed;
	struct pack_stats stats = { .stacks = stacks_pack };
	make_own(PIECE);
	load(RAW, &raw);
	assert_int_equal(trace_pack(RAW, PACKED, &stats, NULL), 0);
	load(PACKED, &packed);
	assert_int_equal(packed.samples.n, raw.samples.n);
	assert_int_equal(packed.rows.n, raw.rows.n);
	for (size_t i = 0; i < raw.samples.n; i++) {
		char a[1024], b[1024];
		stacks_row_text(&raw, raw.samples.v[i].stack, 64, a, sizeof a);
		stacks_row_text(&packed, packed.samples.v[i].stack, 64, b, sizeof b);
		assert_string_equal(a, b);
		assert_int_equal(raw.samples.v[i].ticks, packed.samples.v[i].ticks);
		assert_int_equal(raw.samples.v[i].dur, packed.samples.v[i].dur);
		assert_int_equal(raw.samples.v[i].tid, packed.samples.v[i].tid);
	}
	struct trace *t = open_trace(PACKED);
	for (size_t i = 0; i < t->chunk_count && can_unwind(&raw); i++)
		assert_int_not_equal(t->chunks[i].head.kind, CHUNK_STACKS);
	trace_close(t);
	stacks_fini(&raw);
	stacks_fini(&packed);
}

/* def f(x):          line 10
 *     y = x          line 11
 *     return g(y)    line 12, 13: "g(\n y)"                                       */
static const uint8_t table[] = {
	0x80, 0x00,             /* 1 unit, short form 0: line + 0 */
	0xd9, 0x08, 0x09,       /* 2 units, form 11: line + 1 */
	0xf2, 0x02, 0x01, 0, 1, /* 3 units, long: line + 1, one line more in it */
	0xe8, 0x03,             /* 1 unit, no columns: line - 1 */
	0xf8,                   /* 1 unit, no line at all */
};

static void lines_of_python_come_from_its_table(void **state)
{
	uint8_t copy[sizeof table];
	memcpy(copy, table, sizeof table);
	const struct python_code c = {
		.first_line = 10, .table = copy, .table_bytes = sizeof copy
	};
	assert_int_equal(python_line(&c, 0), 10);
	assert_int_equal(python_line(&c, 2), 11);
	assert_int_equal(python_line(&c, 4), 11);
	assert_int_equal(python_line(&c, 6), 12);
	assert_int_equal(python_line(&c, 10), 12);
	assert_int_equal(python_line(&c, 12), 11);
	assert_int_equal(python_line(&c, 14), 10);
	assert_int_equal(python_line(&c, 1000), 10);
	/* Cut anywhere, it is read to where it ends. */
	for (uint32_t n = 0; n < sizeof table; n++) {
		const struct python_code cut = {
			.first_line = 10, .table = copy, .table_bytes = n
		};
		assert_true(python_line(&cut, 6) >= 10);
	}
}

static void put_code(struct maker *m, int meta, uint64_t number, const void *name, uint64_t bytes,
	uint64_t width)
{
	char text[64] = "app.py";
	const uint64_t args[3] = { number, 10 | 1ull << 32 | width << 40, 6 | bytes << 32 };
	memcpy(text + 6, name, bytes);
	memcpy(text + 6 + bytes, table, sizeof table);
	const uint32_t all = (uint32_t)(6 + bytes + sizeof table);
	maker_meta(m, meta, META_CODE, 1000000, 3, args, text, all, all);
}

static void frames_of_python_are_there_without_those_of_c(void **state)
{
	struct maker *m = maker_new(RAW, maker_schema, TRACE_GRAIN);
	const int meta = maker_thread(m, CHUNK_META, PID, 0, ""),
		  thread = maker_thread(m, CHUNK_STACKS, PID, PID, "main");
	const uint16_t wide[] = { 'g', 0xf6, 0x3b1 };
	struct stacks s;
	char text[256];
	put_code(m, meta, 1, "f", 1, 1);
	put_code(m, meta, 2, wide, sizeof wide, 2);
	memset(words, 0, sizeof words);
	words[STACK_COUNTS] |= 3;
	words[STACK_WORDS] = 2 | 2ull << 32;
	words[STACK_WORDS + 1] = 1 | 6ull << 32 | STACK_PYTHON_ENTRY;
	words[STACK_WORDS + 2] = 3; /* nobody has said who that is */
	put_piece(m, thread, 1000100, 0);
	maker_finish(m, 2000000, false);
	load(RAW, &s);
	assert_int_equal(s.samples.n, 1);
	stacks_row_text(&s, s.samples.v[0].stack, 8, text, sizeof text);
	assert_string_equal(text, "g\xc3\xb6\xce\xb1 (app.py:11) < f (app.py:12) < ?");
	stacks_fini(&s);
}

/* A framework has many functions between a line of Python and the call. */
static void a_line_of_python_is_shown_behind_many_functions(void **state)
{
	struct stacks s = { 0 };
	uint32_t frames[10];
	char text[256];
	for (uint32_t i = 0; i < 8; i++)
		frames[i] = stacks_add_frame(
			&s, &(struct stack_frame){ .function = i % 2 ? "inner" : "outer",
				    .module = "libframework.so",
				    .file = "" });
	frames[8] = stacks_add_frame(&s, &(struct stack_frame){ .function = "step",
						 .module = "",
						 .file = "train.py",
						 .line = 7,
						 .kind = CALLER_PYTHON });
	frames[9] = stacks_add_frame(&s, &(struct stack_frame){ .function = "main",
						 .module = "",
						 .file = "train.py",
						 .line = 20,
						 .kind = CALLER_PYTHON });
	const uint32_t row = stacks_add_row(&s, frames, 10, STACK_WHOLE);
	stacks_row_text(&s, row, 3, text, sizeof text);
	assert_string_equal(
		text, "outer (libframework.so) < step (train.py:7) < main (train.py:20)");
	stacks_row_text(&s, row, 2, text, sizeof text);
	assert_string_equal(text, "outer (libframework.so) < step (train.py:7)");
	const uint32_t native = stacks_add_row(&s, frames, 8, STACK_WHOLE);
	stacks_row_text(&s, native, 2, text, sizeof text);
	assert_string_equal(text, "outer (libframework.so) < inner (libframework.so)");
	stacks_fini(&s);
}

static void pieces_that_lie_about_their_size_are_left_out(void **state)
{
	struct maker *m = maker_new(RAW, maker_schema, TRACE_GRAIN);
	const int thread = maker_thread(m, CHUNK_STACKS, PID, PID, "main");
	struct stacks s;
	memset(words, 0, sizeof words);
	const struct record head = {
		.ticks = 1000100, .fn = FN_ALLOC, .words = RECORD_WORDS + STACK_WORDS
	};
	struct record r = head;
	r.aux = 8;
	maker_put(m, thread, r, words);
	r = head;
	words[STACK_COUNTS] |= 1;
	maker_put(m, thread, r, words);
	r.words = RECORD_WORDS + 2;
	maker_put(m, thread, r, words);
	maker_finish(m, 2000000, false);
	load(RAW, &s);
	assert_int_equal(s.samples.n, 0);
	stacks_fini(&s);
}

/* How often what is mapped is looked at from `from` to `to`, at what cost; it changes until
 * `loads`. */
static unsigned looks_between(uint64_t from, uint64_t to, uint64_t cost, uint64_t loads)
{
	unsigned looks = 0;
	uint64_t rest = 0;
	for (uint64_t now = 0; now < to; now += cost + rest) {
		looks += now >= from;
		rest = pace_next(rest, cost, now < loads);
		assert_true(rest >= REST_SHORT && rest >= 100 * cost);
	}
	return looks;
}

static void what_is_mapped_is_looked_at_seldom_once_nothing_is_loaded(void **state)
{
	const uint64_t ms = 3000000, second = 1000 * ms, cost = 7 * ms / 10;
	/* While libraries are loaded, as often as takes a hundredth of the time. */
	assert_in_range(looks_between(0, 10 * second, cost, 10 * second), 135, 145);
	/* Then at half the rate, a quarter of it, and so on, down to one in two seconds. */
	assert_in_range(looks_between(second, 5 * second, cost, second), 4, 8);
	assert_in_range(looks_between(10 * second, 70 * second, cost, second), 25, 31);
	assert_in_range(looks_between(10 * second, 70 * second, ms / 100, second), 25, 31);
	/* One that takes long is not done more often than that allows. */
	assert_in_range(looks_between(0, 100 * second, 50 * ms, 0), 15, 21);
	/* Something new: soon again. */
	assert_int_equal(pace_next(REST_LONG, ms / 100, true), REST_SHORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_stack_is_unwound_to_main),
		cmocka_unit_test(processes_share_no_file_with_another_build_id),
		cmocka_unit_test(a_short_piece_is_said_to_be_cut),
		cmocka_unit_test(a_call_is_found_by_any_moment_in_it),
		cmocka_unit_test(packing_keeps_stacks_and_leaves_pieces_out),
		cmocka_unit_test(lines_of_python_come_from_its_table),
		cmocka_unit_test(frames_of_python_are_there_without_those_of_c),
		cmocka_unit_test(a_line_of_python_is_shown_behind_many_functions),
		cmocka_unit_test(pieces_that_lie_about_their_size_are_left_out),
		cmocka_unit_test(what_is_mapped_is_looked_at_seldom_once_nothing_is_loaded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
