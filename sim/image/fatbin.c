/*
 * Fat binaries: containers of one or more, each a header and entries.
 *
 *	container  u32 magic, u16 version, u16 header bytes, u64 body bytes, body
 *	entry      u16 kind (1 PTX, 2 ELF), u16 version, u32 header bytes,
 *	           u64 payload bytes, u32 compressed bytes, …,
 *	           28: u32 architecture, …, 40: u64 flags, …, 56: u64 plain bytes
 *
 * The driver prefers machine code for the device's architecture, of the same major version
 * and no newer, and falls back on the newest PTX that is no newer than the device.
 */
#include "image/image.h"
#include "sim_enums.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { KIND_PTX = 1, KIND_ELF = 2, FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };
enum { ENTRY_HEADER = 64, MAX_PLAIN = 1 << 28, MAX_RATIO = 4096 };

struct entry {
	int kind;
	uint32_t arch;
	uint64_t flags;
	const uint8_t *payload;
	size_t size; /* of the payload without padding */
	size_t plain_size;
};

static uint16_t get16(const uint8_t *p)
{
	uint16_t x;

	memcpy(&x, p, sizeof x);
	return x;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t x;

	memcpy(&x, p, sizeof x);
	return x;
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof x);
	return x;
}

/* Reads the entry at data; *ret_next is how far it is to the next one.  False: damaged. */
static bool read_entry(const uint8_t *data, size_t size, struct entry *ret_entry, size_t *ret_next)
{
	if (size < ENTRY_HEADER)
		return false;
	size_t header = get32(data + 4);
	uint64_t padded = get64(data + 8);
	uint32_t compressed = get32(data + 16);
	if (header < ENTRY_HEADER || header > size || padded > size - header)
		return false;
	uint64_t flags = get64(data + 40);
	bool packed = flags & (FLAG_LZ4 | FLAG_ZSTD);
	if (packed && compressed > padded)
		return false;
	*ret_entry = (struct entry){
		.kind = get16(data),
		.arch = get32(data + 28),
		.flags = flags,
		.payload = data + header,
		.size = packed && compressed ? compressed : padded,
		.plain_size = packed ? get64(data + 56) : padded,
	};
	*ret_next = header + padded;
	return true;
}

/* The score of an entry on a device: 0 is useless, machine code beats PTX. */
static uint32_t score(const struct entry *e, int capability)
{
	uint32_t device = (uint32_t)capability;

	if (e->arch > device || e->arch == 0)
		return 0;
	if (e->kind == KIND_ELF)
		return e->arch / 10 == device / 10 ? 1000 + e->arch : 0;
	return e->kind == KIND_PTX ? e->arch : 0;
}

static int choose(
	const uint8_t *body, size_t size, int capability, struct entry *best, uint32_t *best_score)
{
	struct entry e;
	size_t next;

	for (; size >= ENTRY_HEADER; body += next, size -= next) {
		if (!read_entry(body, size, &e, &next))
			return CUDA_ERROR_INVALID_IMAGE;
		uint32_t s = score(&e, capability);
		if (s > *best_score) {
			*best_score = s;
			*best = e;
		}
	}
	return 0;
}

static bool unpack(const struct entry *e, uint8_t *plain)
{
	if (e->flags & FLAG_ZSTD)
		return ZSTD_decompress(plain, e->plain_size, e->payload, e->size) == e->plain_size;
	if (e->size > INT32_MAX)
		return false;
	return LZ4_decompress_safe((const char *)e->payload, (char *)plain, (int)e->size,
		       (int)e->plain_size) == (int)e->plain_size;
}

static int parse_plain(
	const struct entry *e, const uint8_t *plain, int capability, struct image *ret_image)
{
	if (e->kind == KIND_ELF)
		return cubin_parse(plain, e->plain_size, capability, ret_image);
	return ptx_parse((const char *)plain, e->plain_size, capability, ret_image);
}

static int parse_entry(const struct entry *e, int capability, struct image *ret_image)
{
	if (!(e->flags & (FLAG_LZ4 | FLAG_ZSTD)))
		return parse_plain(e, e->payload, capability, ret_image);
	/* No real entry shrinks that much: a lie would only cost memory. */
	if (e->plain_size > MAX_PLAIN || e->plain_size / MAX_RATIO > e->size)
		return CUDA_ERROR_INVALID_IMAGE;
	uint8_t *plain = malloc(e->plain_size + 1);
	if (!plain)
		return CUDA_ERROR_OUT_OF_MEMORY;
	int r = CUDA_ERROR_INVALID_IMAGE;
	if (unpack(e, plain))
		r = parse_plain(e, plain, capability, ret_image);
	free(plain);
	return r;
}

int fatbin_parse(const uint8_t *data, size_t size, int capability, struct image *ret_image)
{
	struct entry best = { 0 };
	uint32_t best_score = 0;

	while (size >= 16 && get32(data) == (uint32_t)IMAGE_FATBIN_MAGIC) {
		size_t header = get16(data + 6);
		uint64_t body = get64(data + 8);
		if (header < 16 || header > size || body > size - header)
			return CUDA_ERROR_INVALID_IMAGE;
		int r = choose(data + header, body, capability, &best, &best_score);
		if (r)
			return r;
		data += header + body;
		size -= header + body;
	}
	if (!best_score)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	return parse_entry(&best, capability, ret_image);
}
