/*
 * Reads whatever comes as call stacks: pieces of stacks, what is said of mapped files and of
 * Python's code beside them, and stacks that were unwound before.
 *
 * The input is pieces: a byte of which the lowest two bits choose the kind of chunk (metadata,
 * stacks, callers), two bytes of length, and the records.  Records get a length that fits, so that
 * what is behind them is reached.  Paths are made one that is there: opening files of this machine
 * by chance would try elfutils, not this.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "event/format.h"
#include "stack/pieces.h"
#include "stack/stacks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MOST (1u << 17)
#define FILE_MOST  (INPUT_MOST + 64u * TRACE_GRAIN)

static const uint16_t kinds[] = { CHUNK_META, CHUNK_STACKS, CHUNK_CALLERS, CHUNK_STACKS };

/* A mapping of no file: its path is emptied where it stands. */
static void disarm(struct record *r)
{
	if (r->fn == META_MAPPING && r->words > RECORD_WORDS + 4)
		memset(r->arg + 4, 0, (r->words - RECORD_WORDS - 4u) * 8u);
}

static void bend(uint8_t *payload, size_t bytes)
{
	for (size_t at = 0; bytes - at >= sizeof(struct record);) {
		struct record *r = (struct record *)(payload + at);
		const size_t most = (bytes - at) / 8;
		if (r->words < RECORD_WORDS || r->words > most)
			r->words = (uint16_t)(most < RECORD_WORDS + r->words % 32u
						      ? most
						      : RECORD_WORDS + r->words % 32u);
		if (r->words < RECORD_WORDS)
			return;
		disarm(r);
		at += r->words * 8u;
	}
}

static uint64_t put_chunk(
	uint8_t *file, uint64_t at, const uint8_t *data, size_t bytes, uint16_t kind)
{
	const uint64_t whole =
		(bytes + CHUNK_PAYLOAD + TRACE_GRAIN - 1) / TRACE_GRAIN * TRACE_GRAIN;
	struct chunk_header *c = (struct chunk_header *)(file + at);
	if (at + whole > FILE_MOST)
		return at;
	*c = (struct chunk_header){ .magic = CHUNK_MAGIC,
		.kind = kind,
		.state = CHUNK_CLOSED,
		.bytes = (uint32_t)whole,
		.used = (uint32_t)(bytes / 8 * 8),
		.pid = 1,
		.tid = 1 + bytes % 3,
		.open = { at, at, at } };
	memcpy(file + at + CHUNK_PAYLOAD, data, bytes);
	bend(file + at + CHUNK_PAYLOAD, bytes / 8 * 8);
	return at + whole;
}

static uint64_t put_chunks(uint8_t *file, const uint8_t *data, size_t size)
{
	uint64_t at = TRACE_GRAIN;
	while (size > 3) {
		size_t n = data[1] | (size_t)data[2] << 8;
		n = n < size - 3 ? n : size - 3;
		at = put_chunk(file, at, data + 3, n, kinds[data[0] & 3]);
		data += 3 + n;
		size -= 3 + n;
	}
	return at;
}

static int count(void *context, const struct chunk_header *head, const void *payload, size_t bytes)
{
	*(size_t *)context += bytes;
	return 0;
}

static void look_at(const struct trace *t)
{
	struct stacks s;
	size_t bytes = 0;
	char text[512];
	if (!stacks_load(t, &s, NULL))
		for (size_t i = 0; i < s.samples.n; i++) {
			const struct stack_sample *at = &s.samples.v[i];
			stacks_row_text(&s, at->stack, 8, text, sizeof text);
			stacks_find(&s, at->process, at->tid, at->ticks);
		}
	stacks_fini(&s);
	stacks_pack(t, count, &bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct trace *t;
	if (size > INPUT_MOST)
		return 0;
	const int fd = memfd_create("stacks", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, FILE_MOST))
		abort();
	uint8_t *file = mmap(NULL, FILE_MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		abort();
	struct trace_header *h = (struct trace_header *)file;
	*h = (struct trace_header){ .version = TRACE_VERSION,
		.header_bytes = TRACE_GRAIN,
		.optional = FEATURE_STACKS,
		.state = TRACE_FINISHED,
		.clock = CLOCK_IS_MONOTONIC };
	memcpy(h->magic, TRACE_MAGIC, 8);
	h->next = put_chunks(file, data, size);
	munmap(file, FILE_MOST);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (!trace_open(path, &t, NULL)) {
		look_at(t);
		trace_close(t);
	}
	close(fd);
	return 0;
}
