/*
 * Hash functions. hash_mix() is the finalizer of splitmix64 (Steele, Lea, Flood 2014), and FNV-1a
 * (Fowler, Noll, Vo) is the hash of the trace format. Host safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Both halves of the product, so that every bit of the inputs reaches every bit of the result. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	const unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint32_t hash_fnv32(const void *data, size_t bytes)
{
	const unsigned char *p = data;
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < bytes; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

static inline uint64_t hash_bytes(const void *data, size_t bytes)
{
	const unsigned char *p = data;
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < bytes; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return hash_mix(h);
}
