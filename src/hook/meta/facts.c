/* Writes the conditions of a recording into the trace. */
#include "hook/meta/facts.h"

#include <fcntl.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bounded.h"
#include "base/sys.h"
#include "event/level.h"
#include "hook/core/config.h"
#include "hook/core/hook_table.h"
#include "hook/core/metadata.h"
#include "hook/core/process.h"
#include "record/sandbox.h"

#define FACT_MOST 128u

#define PUBLIC __attribute__((visibility("default")))

/* From outside, for this process and for those that it forks. */
#define FACTS_KEPT 8u
static struct {
	_Atomic uint32_t bytes; /* 0: being written */
	char text[FACT_MOST];
} kept[FACTS_KEPT];
static _Atomic uint32_t kept_count;

/* "KEY VALUE"; how long it is, 0 when it is too long or says nothing. */
static uint32_t join(char text[FACT_MOST], const char *key, const char *value, size_t bytes)
{
	const size_t n = strnlen(key, FACT_MOST);
	if (!n || !bytes || n + 1 + bytes > FACT_MOST)
		return 0;
	memcpy(text, key, n);
	text[n] = ' ';
	memcpy(text + n + 1, value, bytes);
	return (uint32_t)(n + 1 + bytes);
}

static void put_fact(const char *key, const char *value, size_t bytes)
{
	char text[FACT_MOST];
	const uint32_t n = join(text, key, value, bytes);
	if (n)
		meta_text(META_FACT, NULL, 0, text, n);
}

void facts_of_recording(void)
{
	static const char version[] = WEIR_VERSION;
	if (!hook_recorder.header)
		return;
	const char *level = level_of_control(load_relaxed(&hook_recorder.header->control));
	put_fact("weir", version, sizeof version - 1);
	put_fact("level", level, strlen(level));
	const struct config_capture *c = &config_get()->capture;
	put_fact("capture", c->what, strlen(c->what));
	put_fact("delay", c->delay, strlen(c->delay));
	if (config_get()->gpu)
		put_fact("gpu", "asked", sizeof "asked" - 1);
	for (uint32_t i = 0; i < FACTS_KEPT; i++) {
		const uint32_t bytes = load_acquire(&kept[i].bytes);
		if (bytes)
			meta_text(META_FACT, NULL, 0, kept[i].text, bytes);
	}
}

/* 13010 is 13.1. */
static void put_cuda(int version)
{
	char text[24];
	struct bounded b = BOUNDED(text);
	if (version < 1000)
		return;
	bounded_decimal(&b, (uint64_t)version / 1000);
	bounded_char(&b, '.');
	bounded_decimal(&b, (uint64_t)version % 1000 / 10);
	put_fact("cuda", text, b.used);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07  Fri …": the first number with a point
 * that begins a word. */
static void put_driver(const char *text)
{
	for (const char *p = text; *p && *p != '\n'; p++) {
		size_t n = 0, points = 0;
		while (is_digit(p[n]) || p[n] == '.')
			points += p[n++] == '.';
		if (n && points && (p == text || p[-1] == ' ') && is_digit(*p)) {
			put_fact("driver", p, n);
			return;
		}
	}
}

void facts_of_driver(void)
{
	char text[256];
	int version = 0;
	if (sandbox_is_closed(hook_recorder.header))
		return;
	if (real_at(FN_cuDriverGetVersion) && !REAL(cuDriverGetVersion)(&version))
		put_cuda(version);
	const long fd = sys(openat, AT_FDCWD, "/proc/driver/nvidia/version", O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return;
	const long got = sys(read, fd, text, sizeof text - 1);
	sys(close, fd);
	if (got <= 0)
		return;
	text[got] = 0;
	put_driver(text);
}

PUBLIC void weir_fact(const char *key, const char *value);

/*
 * A fact that python/weir knows: PyTorch's version, for one.  If the process has not come to CUDA
 * yet, the library keeps it until then: nothing else is a sign of it.
 */
void weir_fact(const char *key, const char *value)
{
	char text[FACT_MOST];
	const uint32_t bytes = key && value ? join(text, key, value, strnlen(value, FACT_MOST)) : 0;
	if (!bytes)
		return;
	const uint32_t at = add_relaxed(&kept_count, 1);
	if (at < FACTS_KEPT) {
		memcpy(kept[at].text, text, bytes);
		store_release(&kept[at].bytes, bytes);
	}
	if (process_is_started() && hook_recorder.header)
		meta_text(META_FACT, NULL, 0, text, bytes);
}
