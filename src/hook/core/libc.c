/*
 * Gives the hook the functions of libc that it needs, without a lookup through the program.
 *
 * A call through the PLT reaches the first library with that name. In a program built with a
 * sanitizer that is the sanitizer, which may not be ready or may check our memory. Hidden functions
 * of the same names bind inside this library instead, also for calls that the compiler inserts.
 *
 * This file implements functions for bytes and strings. It calls the rest at their addresses in
 * glibc. Its compiler flags keep a loop from becoming a call of the function that contains it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "base/atomic.h"
#include "base/cpu.h"
#include "hook/core/elf.h"
#include "hook/core/libc.h"

typedef uint64_t word_t __attribute__((may_alias, aligned(1)));
typedef struct {
	word_t low, high;
} pair_t;

#define LONG 512u /* from here on the processor's own copying is faster */

/* Upwards, so that `to` may begin within what is copied if it stands before it. */
static void copy(char *to, const char *from, size_t n)
{
	if (n >= LONG && cpu_copy(to, from, n))
		return;
	for (; n >= sizeof(pair_t);
		n -= sizeof(pair_t), to += sizeof(pair_t), from += sizeof(pair_t)) {
		const pair_t both = *(const pair_t *)from;
		*(pair_t *)to = both;
	}
	for (; n >= sizeof(word_t);
		n -= sizeof(word_t), to += sizeof(word_t), from += sizeof(word_t))
		*(word_t *)to = *(const word_t *)from;
	while (n--)
		*to++ = *from++;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	copy(to, from, n);
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	char *t = to;
	const char *f = from;
	if ((uintptr_t)to - (uintptr_t)from >= n) {
		copy(t, f, n);
		return to;
	}
	for (; n >= sizeof(word_t); n -= sizeof(word_t))
		*(word_t *)(t + n - sizeof(word_t)) = *(const word_t *)(f + n - sizeof(word_t));
	while (n--)
		t[n] = f[n];
	return to;
}

void *memset(void *to, int byte, size_t n)
{
	char *t = to;
	const uint64_t each = 0x0101010101010101u * (unsigned char)byte;
	if (n >= LONG && cpu_fill(t, byte, n))
		return to;
	for (; n >= sizeof(word_t); n -= sizeof(word_t), t += sizeof(word_t))
		*(word_t *)t = each;
	while (n--)
		*t++ = (char)byte;
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;
	for (; n >= sizeof(word_t) && *(const word_t *)x == *(const word_t *)y; n -= sizeof(word_t))
		x += sizeof(word_t), y += sizeof(word_t);
	for (; n; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

#define LANES 16u

/*
 * How many bytes stand before the first that is c; at most n.  Bytes are read with their
 * neighbours of 16, and so never from a page of which none is asked for.
 */
static size_t before(const char *s, unsigned char c, size_t n)
{
	const size_t skip = (uintptr_t)s % LANES;
	if (!n)
		return 0;
	unsigned found = cpu_equal(s - skip, c) >> skip;
	size_t i = found ? 0 : LANES - skip;
	for (; !found && i < n; i += found ? 0 : LANES)
		found = cpu_equal(s + i, c);
	if (found)
		i += (unsigned)__builtin_ctz(found);
	return i < n ? i : n;
}

void *memchr(const void *s, int c, size_t n)
{
	const size_t at = before(s, (unsigned char)c, n);
	return at < n ? (char *)(uintptr_t)s + at : NULL;
}

size_t strlen(const char *s)
{
	return before(s, 0, SIZE_MAX);
}

size_t strnlen(const char *s, size_t n)
{
	return before(s, 0, n);
}

int strncmp(const char *a, const char *b, size_t n)
{
	for (; n && *a && *a == *b; n--)
		a++, b++;
	return n ? (unsigned char)*a - (unsigned char)*b : 0;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

char *strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (!*s)
			return NULL;
	return (char *)(uintptr_t)s;
}

char *strrchr(const char *s, int c)
{
	char *last = NULL;
	for (; (s = strchr(s, c)); s++) {
		last = (char *)(uintptr_t)s;
		if (!*s)
			break;
	}
	return last;
}

char *strstr(const char *s, const char *what)
{
	const size_t n = strlen(what);
	for (; strncmp(s, what, n); s++)
		if (!*s)
			return NULL;
	return (char *)(uintptr_t)s;
}

char *strncpy(char *restrict to, const char *restrict from, size_t n)
{
	const size_t bytes = strnlen(from, n);
	memcpy(to, from, bytes);
	memset(to + bytes, 0, n - bytes);
	return to;
}

/* The loader's list of objects.  musl, the other libc, has the same list under its own name. */
extern struct r_debug _r_debug __attribute__((weak));
extern const struct r_debug *_dl_debug_addr __attribute__((weak));

bool libc_is_glibc(void)
{
	return &_r_debug;
}

static bool is_libc(const struct elf *e)
{
	if (libc_is_glibc()) /* before glibc 2.34 libdl has dlopen, dlsym and dlerror */
		return e->soname &&
		       (!strcmp(e->soname, "libc.so.6") || !strcmp(e->soname, "libdl.so.2"));
	return elf_find(e, "__libc_start_main");
}

/* libc stands in the loader's list before anything that a program loads, and stays there. */
static void *find(const char *name)
{
	const struct r_debug *loaded = libc_is_glibc()   ? &_r_debug
				       : &_dl_debug_addr ? _dl_debug_addr
							 : NULL;
	struct elf e;
	void *found = NULL;
	for (const struct link_map *m = loaded ? loaded->r_map : NULL; m && !found; m = m->l_next)
		if (elf_read(&e, m->l_addr, m->l_ld) && is_libc(&e))
			found = elf_find(&e, name);
	return found;
}

/* The address of a function of libc: looked up once, with the same answer for every thread. */
#define REAL(name)                                                                                 \
	({                                                                                         \
		static _Atomic(__typeof__(&name)) known;                                           \
		__typeof__(&name) real = load_relaxed(&known);                                     \
		if (__builtin_expect(!real, 0)) {                                                  \
			real = (__typeof__(&name))find(#name);                                     \
			store_relaxed(&known, real);                                               \
		}                                                                                  \
		real;                                                                              \
	})

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	return REAL(clock_gettime)(id, ret_time);
}

int *__errno_location(void)
{
	return REAL(__errno_location)();
}

int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	return REAL(dl_iterate_phdr)(visit, data);
}

char *dlerror(void)
{
	return REAL(dlerror)();
}

void *dlopen(const char *file, int mode)
{
	return REAL(dlopen)(file, mode);
}

/* The library's own look-ups go here (the linker's --wrap): dlsym is what it gives to others. */
void *__wrap_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name)
{
	return REAL(dlsym)(handle, name);
}

unsigned long getauxval(unsigned long type)
{
	return REAL(getauxval)(type);
}

/* For atexit() and pthread_atfork(), which the linker takes from libc's static part. */
int __cxa_atexit(void (*run)(void *), void *data, void *library);
int __register_atfork(
	void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);

int __cxa_atexit(void (*run)(void *), void *data, void *library)
{
	return REAL(__cxa_atexit)(run, data, library);
}

int __register_atfork(
	void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library)
{
	return REAL(__register_atfork)(prepare, parent, child, library);
}
