/*
 * CRC-32C (Castagnoli, RFC 3720, appendix B.4) checks files and kept tables. It takes half a byte
 * at a time, so its table has 64 bytes. Host safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline uint32_t crc32c(const void *data, size_t bytes)
{
	static const uint32_t nibble[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
		0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6,
		0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };
	const unsigned char *p = data;
	uint32_t crc = ~0u;
	for (size_t i = 0; i < bytes; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ nibble[crc & 15];
		crc = crc >> 4 ^ nibble[crc & 15];
	}
	return ~crc;
}
