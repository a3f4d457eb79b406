/*
 * Reads whatever comes as a trace, all the way: open, names, report, exporters, tail, pack.  So
 * that there are a thousand inputs a second, each is read by one of these, chosen by what it holds;
 * a replay has them all.
 *
 * The first byte says what the rest is.  'F': a file as it is.  'B': the content of a packed
 * file: pieces, each `kind encoding records(2) length(2)` and payload, which are compressed
 * and sealed here, so that the fuzzer need not find checksums.  'R': the same for a raw file.
 * 'S': the text of a schema.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/hash.h"
#include "mutate.h"
#include "export/export.h"
#include "hint/hint.h"
#include "page/html.h"
#include "allocator/allocator.h"
#include "report/memory_print.h"
#include "report/report_make.h"
#include "trace/activity.h"
#include "trace/pack.h"
#include "trace/part.h"
#include "trace/tail.h"
#include "trace/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) __attribute__((weak));

/* Files are changed with their checksums, content in any way. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
	if (size && data[0] == 'F' && seed % 8)
		return 1 + mutate(data + 1, size - 1, most - 1, seed);
	return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, most) : size;
}

#define INPUT_MOST (1u << 18)

static FILE *nowhere;
static char packed_path[] = "/dev/shm/fuzz_trace.packed.XXXXXX"; /* in memory, of its own */

/* Functions of all kinds, with ids that a byte can hold. */
static const char schema[] =
	"1 driver launch launch l(CUfunction f)\n"
	"2 driver launch graphlaunch g(CUgraphExec h, CUstream s)\n"
	"3 driver memory alloc:p=0:n=1*2:m=device a(out CUdeviceptr p, size_t b, size_t c)\n"
	"4 driver memory free:p=0:m=device f(CUdeviceptr p)\n"
	"5 driver copy copy:n=0x4:d=HtoD c(size_t n, CUstream s)\n"
	"6 runtime launch rtlaunch r(CUfunction f)\n"
	"7 driver other call s(str a, str b, dim3 d, cudaExtent e, float x, loc w, ipc i, int n)\n"
	"8 runtime query status q()\n"
	"9 driver memory alloc:p=0:n=1:m=vmm v(out CUdeviceptr h, size_t b)\n"
	"10 driver memory free:p=0:m=vmm w(CUdeviceptr h)\n"
	"11 driver memory call cuMemMap(CUdeviceptr p, size_t b, size_t o, CUdeviceptr h)\n"
	"12 driver memory call cuMemUnmap(CUdeviceptr p, size_t b)\n"
	"13 driver memory alloc:p=0:n=1:m=segment x(out CUdeviceptr p, size_t b)\n"
	"14 driver memory free:p=0:m=segment y(CUdeviceptr p)\n"
	"15 driver memory alloc:p=0:n=1:m=device cuMemAlloc_v2(out CUdeviceptr p, size_t b)\n"
	"16 driver memory free:p=0:m=device cuMemFree_v2(CUdeviceptr p)\n"
	"17 allocator memory alloc:p=0:n=1:m=device allocate(out CUdeviceptr p, size_t b, "
	"CUdevice device, out size_t reserved)\n"
	"18 allocator memory free:p=0:m=device free(CUdeviceptr p, size_t b, CUdevice device, "
	"out size_t reserved)\n"
	"type CUstream ptr 8\ntype size_t uint 8\ntype str str 8\ntype dim3 dim3 12\n"
	"type cudaExtent extent 24\ntype float float 4\ntype loc loc 8\ntype ipc ipc 64\n"
	"type int int 4\n";

static void call(void *context, const struct chunk_header *chunk, const struct record *r)
{
	*(uint64_t *)context += r->words + chunk->tid;
}

/* Replays those that have few words for memory of any size; the pool has a target of its own. */
static void replay_allocations(const struct report *r)
{
	static struct alloc_replay replay;
	struct alloc_trace t;
	struct error err;
	if (alloc_trace_read(r, &t, &err))
		return;
	if (!allocator_replay(&t, alloc_designs_parse("pytorch,expandable"), 8u << 20, &replay)) {
		alloc_put_json(&replay, nowhere);
		alloc_put_svg(&replay, nowhere);
	}
	alloc_trace_free(&t);
}

static void read_report(const struct trace *t)
{
	struct report *r;
	if (report_make(t, 1, FACETS_ALL, &r, NULL))
		return;
	hints_print_text(r->hints, nowhere, 0, false, true);
	report_print_text(r, nowhere, &(struct report_style){ .rows = 5 });
	report_print_json(r, nowhere, false);
	memory_print_text(r, nowhere, 5, false, true);
	memory_print_json(r, nowhere, false);
	replay_allocations(r);
	report_free(r);
}

/* So few items that neighbours are merged. */
static void read_page(const struct trace *t)
{
	struct html h;
	if (!html_make(&h, t, &(struct html_sizes){ 4, 16 }, NULL))
		html_put(&h, nowhere);
	html_fini(&h);
}

/* All that need no path of their own. */
static const struct exporter *nth_exporter(unsigned n)
{
	const struct exporter *const *at = exporters;
	while (*at && ((*at)->wants_path || n--))
		at++;
	return *at;
}

static unsigned count_exporters(void)
{
	unsigned n = 0;
	while (nth_exporter(n))
		n++;
	return n;
}

static void read_export(const struct trace *t, unsigned which)
{
	struct error err;
	export_run(nth_exporter(which), t, NULL, NULL, nowhere, &err);
}

static void read_packed(const char *path)
{
	struct pack_stats stats = { 0 };
	struct error err;
	if (!trace_pack(path, packed_path, &stats, &err))
		unlink(packed_path);
}

static void read_tail(const char *path)
{
	struct tail *tail;
	struct error err;
	uint64_t sum = 0;
	if (tail_open(path, &tail, &err))
		return;
	tail_poll(tail, call, &sum);
	tail_poll(tail, call, &sum);
	tail_close(tail);
}

/* The readers are all exporters, and four more. */
enum { READ_TAIL, READ_PACKED, READ_REPORT, READ_PAGE, READ_MORE };

#ifndef FUZZ_REPLAY
/* Reports and pages take as long as all others together, and have an input in twelve. */
static unsigned reader_of(const uint8_t *data, size_t size)
{
	const uint32_t h = hash_fnv32(data, size);
	const unsigned exports = count_exporters();
	return h % 24 < exports + READ_MORE ? h % 24 : h / 24 % (exports + READ_REPORT);
}
#endif

/* One trace in two is read in part: which, its size says. */
static bool cut(struct trace *t)
{
	static const struct trace_cut cuts[] = { { 0 }, { .after_ns = 1000 },
		{ .before_ns = 100000 }, { .range = "a" },
		{ .steps = true, .first_step = 1, .last_step = 2 }, { .steady = true },
		{ .after_ns = 1, .range = "" } };
	struct error err;
	const uint64_t which = t->size / 8;
	return which % 2 || !trace_cut(t, &cuts[which / 2 % (sizeof cuts / sizeof *cuts)], &err);
}

static void read_by(const char *path, unsigned reader)
{
	const unsigned exports = count_exporters();
	struct trace *t, *other;
	struct error err;
	if (reader == exports + READ_TAIL) {
		read_tail(path);
		return;
	}
	if (reader == exports + READ_PACKED) {
		read_packed(path);
		return;
	}
	if (trace_open(path, &t, &err))
		return;
	if (t->size % 16 == 8 && !trace_open(path, &other, &err) &&
		trace_take_in(t, other, path, &err))
		trace_close(other);
	if (!cut(t))
		; /* nothing is left of it */
	else if (reader < exports)
		read_export(t, reader);
	else if (reader == exports + READ_REPORT)
		read_report(t);
	else
		read_page(t);
	trace_close(t);
}

struct piece {
	uint8_t kind, encoding;
	uint16_t records, length;
	const uint8_t *payload;
};

static int next_piece(const uint8_t **data, size_t *size, struct piece *p)
{
	if (*size < 6)
		return 0;
	p->kind = (*data)[0] % 10;
	p->encoding = (*data)[1] % 3;
	memcpy(&p->records, *data + 2, 2);
	memcpy(&p->length, *data + 4, 2);
	*data += 6;
	*size -= 6;
	if (p->length > *size)
		p->length = (uint16_t)*size;
	const size_t each = array_record_bytes(p->kind);
	if (p->encoding == ENCODING_WORDS && each) { /* or the block is refused at once */
		p->length = (uint16_t)(p->length - p->length % each);
		p->records = (uint16_t)(p->length / each);
	}
	p->payload = *data;
	*data += p->length;
	*size -= p->length;
	return 1;
}

static void put(int fd, const void *data, size_t bytes)
{
	if (write(fd, data, bytes) != (ssize_t)bytes)
		abort();
}

static void put_block(int fd, const struct piece *p)
{
	static uint8_t packed[ZSTD_COMPRESSBOUND(65536)];
	static const uint8_t zeros[8];
	const size_t n = ZSTD_compress(packed, sizeof packed, p->payload, p->length, 1);
	struct block_header b = { .magic = BLOCK_MAGIC,
		.bytes = (uint32_t)n,
		.raw_bytes = p->length,
		.encoding = p->encoding,
		.records = p->records,
		.chunk = { .magic = CHUNK_MAGIC,
			.kind = p->kind,
			.state = CHUNK_CLOSED,
			.used = p->length,
			.pid = 1,
			.tid = p->records & 3,
			.seq = p->records } };
	const size_t skip = offsetof(struct block_header, bytes);
	b.check = hash_fnv32((const char *)&b + skip, sizeof b - skip);
	put(fd, &b, sizeof b);
	put(fd, packed, n);
	put(fd, zeros, -n & 7);
}

/* A hole behind what is there, as large as the rest of a chunk: pages that nobody writes. */
static void put_zeros(int fd, size_t bytes)
{
	const off_t end = lseek(fd, (off_t)bytes, SEEK_CUR);
	if (end < 0 || ftruncate(fd, end))
		abort();
}

static void put_chunk(int fd, const struct piece *p)
{
	const size_t bytes = 2 * TRACE_GRAIN, gap = CHUNK_PAYLOAD - sizeof(struct chunk_header);
	const struct chunk_header h = { .magic = CHUNK_MAGIC,
		.kind = p->kind,
		.state = p->encoding ? CHUNK_OPEN : CHUNK_CLOSED,
		.bytes = bytes,
		.used = p->length,
		.pid = 1,
		.tid = p->records & 3,
		.seq = p->records };
	put(fd, &h, sizeof h);
	put_zeros(fd, gap);
	put(fd, p->payload, p->length);
	put_zeros(fd, bytes - CHUNK_PAYLOAD - p->length);
}

static void put_header(int fd, enum trace_form form, uint64_t next)
{
	const size_t bytes = form == TRACE_RAW ? TRACE_GRAIN : sizeof(struct trace_header);
	const struct trace_header h = { .magic = TRACE_MAGIC,
		.version = TRACE_VERSION,
		.header_bytes = (uint32_t)bytes,
		.form = form,
		.clock = CLOCK_IS_MONOTONIC,
		.next = next };
	put(fd, &h, sizeof h);
	put_zeros(fd, bytes - sizeof h);
}

static void put_pieces(int fd, const uint8_t *data, size_t size, enum trace_form form)
{
	struct piece p = {
		.kind = CHUNK_SCHEMA, .length = sizeof schema, .payload = (const uint8_t *)schema
	};
	put_header(fd, form, form == TRACE_RAW ? TRACE_GRAIN * 1000ull : 0);
	do
		form == TRACE_RAW ? put_chunk(fd, &p) : put_block(fd, &p);
	while (next_piece(&data, &size, &p));
}

static void put_schema(int fd, const uint8_t *data, size_t size)
{
	const struct piece p = { .kind = CHUNK_SCHEMA,
		.payload = data,
		.length = (uint16_t)(size < 60000 ? size : 60000) };
	put_header(fd, TRACE_PACKED, 0);
	put_block(fd, &p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	if (!nowhere) {
		nowhere = fopen("/dev/null", "w");
		close(mkstemp(packed_path)), unlink(packed_path);
	}
	if (!size || size > INPUT_MOST)
		return 0;
	const int fd = memfd_create("trace", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	if (data[0] == 'B')
		put_pieces(fd, data + 1, size - 1, TRACE_PACKED);
	else if (data[0] == 'R')
		put_pieces(fd, data + 1, size - 1, TRACE_RAW);
	else if (data[0] == 'S')
		put_schema(fd, data + 1, size - 1);
	else
		put(fd, data + 1, size - 1);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
#ifdef FUZZ_REPLAY
	for (unsigned reader = 0; reader < count_exporters() + READ_MORE; reader++)
		read_by(path, reader);
#else
	read_by(path, reader_of(data, size));
#endif
	close(fd);
	return 0;
}
