/* Appends records of metadata to the trace. */
#include "hook/core/metadata.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "hook/core/process.h"
#include "hook/core/strings.h"
#include "record/writer.h"

struct record *meta_begin(enum meta_id id, uint32_t args, uint32_t bytes)
{
	const uint32_t words = RECORD_WORDS + args + (bytes + 7) / 8;
	struct record *r = words <= UINT16_MAX ? meta_reserve(&hook_recorder, words) : NULL;
	if (!r)
		return NULL;
	r->ticks = clock_now();
	r->dur = 0;
	r->words = (uint16_t)words;
	r->aux = bytes;
	return r;
}

void meta_text(
	enum meta_id id, const uint64_t *args, uint32_t count, const char *text, uint32_t bytes)
{
	struct record *r = meta_begin(id, count, bytes);
	if (!r)
		return;
	if (count)
		memcpy(r->arg, args, count * 8);
	memcpy(r->arg + count, text, bytes);
	record_commit(r, (uint16_t)id);
}

bool meta_has_room(void)
{
	if (!hook_recorder.header || !meta_is_scarce(&hook_recorder))
		return true;
	add_relaxed(&hook_recorder.header->unnamed, 1);
	return false;
}

void meta_message(const char *text)
{
	meta_text(META_MESSAGE, NULL, 0, text, (uint32_t)strlen(text));
}

static size_t read_whole(const char *path, char *to, size_t size)
{
	const long fd = sys(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return 0;
	const long got = sys(read, fd, to, size);
	sys(close, fd);
	return got > 0 ? (size_t)got : 0;
}

void meta_process(void)
{
	if (!hook_recorder.header)
		return;
	char text[2048];
	const long link = sys(readlinkat, AT_FDCWD, "/proc/self/exe", text, 512);
	size_t n = link > 0 ? (size_t)link : 0;
	text[n++] = 0;
	n += read_whole("/proc/self/cmdline", text + n, sizeof text - n);
	const uint64_t parent = (uint64_t)sys(getppid);
	meta_text(META_PROCESS, &parent, 1, text, (uint32_t)n);
}

uint64_t own_range_begin(uint16_t kind, const char *name)
{
	_Static_assert(offsetof(struct range, valid) == offsetof(struct range, kind) + 2, "a word");
	uint64_t id = 0;
	struct range *g = span_reserve(&hook_recorder, &id);
	if (!g)
		return 0;
	g->ticks = clock_now();
	g->tid = (uint32_t)sys(gettid);
	g->name = string_of(name);
	store_release((_Atomic uint32_t *)(void *)&g->kind, kind | (uint32_t)RANGE_OPEN << 16);
	return id;
}

void own_range_end(uint64_t id)
{
	struct range *g = id ? span_find(id) : NULL;
	if (!g)
		return;
	const uint64_t now = clock_now();
	g->dur = now > g->ticks ? now - g->ticks : 0;
	store_release(shared(&g->valid), 0);
}
