/*
 * The hook's functions in libc's place (src/hook/core/libc.c) answer as libc does: for all short
 * lengths and alignments, up against a page that can't be read.
 */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/mman.h>
#include <time.h>

/* The functions are compiled for this test by these names. */
void *hook_memcpy(void *to, const void *from, size_t n);
void *hook_memmove(void *to, const void *from, size_t n);
void *hook_memset(void *to, int byte, size_t n);
int hook_memcmp(const void *a, const void *b, size_t n);
void *hook_memchr(const void *s, int c, size_t n);
size_t hook_strlen(const char *s);
size_t hook_strnlen(const char *s, size_t n);
int hook_strncmp(const char *a, const char *b, size_t n);
int hook_strcmp(const char *a, const char *b);
char *hook_strchr(const char *s, int c);
char *hook_strrchr(const char *s, int c);
char *hook_strstr(const char *s, const char *what);
char *hook_strncpy(char *to, const char *from, size_t n);
int hook_clock_gettime(clockid_t id, struct timespec *ret_time);
int *hook___errno_location(void);
int hook_dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data);
char *hook_dlerror(void);
void *hook_dlopen(const char *file, int mode);
void *__wrap_dlsym(void *handle, const char *name);

#define ROOM  4096u
#define SHORT 80u

/* Behind and in front of the bytes is memory that nobody may touch. */
static unsigned char *page_between(void)
{
	unsigned char *p =
		mmap(NULL, 3 * ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + ROOM, ROOM, PROT_READ | PROT_WRITE), 0);
	return p + ROOM;
}

static void fill(unsigned char *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static int sign(int x)
{
	return (x > 0) - (x < 0);
}

static void copies_at_every_length(void **state)
{
	unsigned char *from = page_between(), *to = page_between(), expected[ROOM];
	fill(from, ROOM, 1);
	for (size_t n = 0; n < ROOM; n += n < SHORT ? 1 : 61)
		for (size_t shift = 0; shift < 17 && n + shift <= ROOM; shift++) {
			memset(to, 0xee, ROOM);
			memset(expected, 0xee, ROOM);
			memcpy(expected + ROOM - n, from + shift, n);
			assert_ptr_equal(
				hook_memcpy(to + ROOM - n, from + shift, n), to + ROOM - n);
			assert_memory_equal(to, expected, ROOM);
		}
}

static void moves_what_overlaps(void **state)
{
	unsigned char *at = page_between(), expected[ROOM];
	for (size_t n = 0; n < 1200; n += n < SHORT ? 1 : 97)
		for (size_t from = 0; from < 40; from += 3)
			for (size_t to = 0; to < 40; to += 1) {
				fill(at, ROOM, (unsigned)n);
				memcpy(expected, at, ROOM);
				memmove(expected + to, expected + from, n);
				assert_ptr_equal(hook_memmove(at + to, at + from, n), at + to);
				assert_memory_equal(at, expected, ROOM);
			}
}

static void fills_at_every_length(void **state)
{
	unsigned char *at = page_between(), expected[ROOM];
	for (size_t n = 0; n < ROOM; n += n < SHORT ? 1 : 61) {
		memset(at, 0x11, ROOM);
		memset(expected, 0x11, ROOM);
		memset(expected + ROOM - n, 0x1fe, n);
		assert_ptr_equal(hook_memset(at + ROOM - n, 0x1fe, n), at + ROOM - n);
		assert_memory_equal(at, expected, ROOM);
	}
}

static void compares_bytes(void **state)
{
	unsigned char *a = page_between(), *b = page_between();
	for (size_t n = 0; n < SHORT; n++)
		for (size_t at = 0; at <= n; at++) {
			fill(a, ROOM, 2);
			memcpy(b, a, ROOM);
			if (at < n)
				b[ROOM - n + at] ^= at % 2 ? 0x80 : 1;
			assert_int_equal(sign(hook_memcmp(a + ROOM - n, b + ROOM - n, n)),
				sign(memcmp(a + ROOM - n, b + ROOM - n, n)));
		}
}

static void finds_bytes(void **state)
{
	unsigned char *page = page_between();
	for (size_t n = 0; n < SHORT; n++)
		for (size_t at = 0; at <= n; at++) {
			char *s = (char *)page + ROOM - n;
			memset(page, 'x', ROOM);
			if (at < n)
				s[at] = (char)0xfe;
			assert_ptr_equal(hook_memchr(s, 0xfe, n), memchr(s, 0xfe, n));
			assert_ptr_equal(hook_memchr(s, 'x', n), memchr(s, 'x', n));
			if (at < n)
				s[at] = 0;
			assert_int_equal(hook_strnlen(s, n), at);
			assert_int_equal(hook_strnlen(s, at / 2), at / 2);
			if (at < n)
				assert_int_equal(hook_strlen(s), at);
			/* at the first byte of a page, too */
			s = (char *)page;
			memset(s, 'x', ROOM);
			s[at] = 0;
			assert_int_equal(hook_strlen(s), at);
			assert_int_equal(hook_strnlen(s, SIZE_MAX), at);
		}
}

static void compares_strings(void **state)
{
	static const char *const words[] = { "", "a", "ab", "abc", "abd", "b", "cuLaunchKernel",
		"cuLaunchKernelEx", "cuLaunchKernel_ptsz", "\xff", "a\xff" };
	for (size_t i = 0; i < COUNT_OF(words); i++)
		for (size_t j = 0; j < COUNT_OF(words); j++) {
			const char *a = words[i], *b = words[j];
			assert_int_equal(sign(hook_strcmp(a, b)), sign(strcmp(a, b)));
			for (size_t n = 0; n < 18; n++)
				assert_int_equal(
					sign(hook_strncmp(a, b, n)), sign(strncmp(a, b, n)));
			assert_ptr_equal(hook_strstr(a, b), strstr(a, b));
			assert_ptr_equal(hook_strchr(a, b[0]), strchr(a, b[0]));
			assert_ptr_equal(hook_strrchr(a, b[0]), strrchr(a, b[0]));
		}
	assert_string_equal(hook_strrchr("/usr/bin/weir", '/'), "/weir");
	assert_string_equal(hook_strstr("aab", "ab"), "ab");
}

static void pads_what_it_copies(void **state)
{
	char to[12], expected[12];
	for (size_t n = 0; n <= sizeof to; n++) {
		memset(to, 'x', sizeof to);
		memset(expected, 'x', sizeof expected);
		memset(expected, 0, n);
		memcpy(expected, "seven77", n < 7 ? n : 7);
		assert_ptr_equal(hook_strncpy(to, "seven77", n), to);
		assert_memory_equal(to, expected, sizeof to);
	}
}

static int count_object(struct dl_phdr_info *info, size_t size, void *count)
{
	++*(int *)count;
	return 0;
}

static void asks_libc_itself(void **state)
{
	struct timespec t = { 0 };
	int objects = 0, again = 0;
	assert_int_equal(hook_clock_gettime(CLOCK_MONOTONIC, &t), 0);
	assert_true(t.tv_sec || t.tv_nsec);
	assert_ptr_equal(hook___errno_location(), &errno);
	hook_dl_iterate_phdr(count_object, &objects);
	dl_iterate_phdr(count_object, &again);
	assert_int_equal(objects, again);
	assert_null(hook_dlopen("/nowhere/libnothing.so", RTLD_NOW));
	assert_non_null(strstr(hook_dlerror(), "libnothing"));
	assert_null(hook_dlerror());
	void *self = hook_dlopen(NULL, RTLD_NOW);
	assert_ptr_equal(__wrap_dlsym(self, "strtoul"), dlsym(self, "strtoul"));
	dlclose(self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_at_every_length),
		cmocka_unit_test(moves_what_overlaps),
		cmocka_unit_test(fills_at_every_length),
		cmocka_unit_test(compares_bytes),
		cmocka_unit_test(finds_bytes),
		cmocka_unit_test(compares_strings),
		cmocka_unit_test(pads_what_it_copies),
		cmocka_unit_test(asks_libc_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
