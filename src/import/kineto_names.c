/* Parses Kineto's names of memcpys, memsets and waits. */
#include <string.h>
#include <strings.h>

#include "import/import_source.h"

static bool begins(const char *text, const char *word)
{
	return !strncasecmp(text, word, strlen(word));
}

/* Behind "Device" may stand "Static", which is tried later and wins. */
static uint8_t memory_kind_of(const char *text)
{
	static const char *const memory_kinds[] = { "", "pageable", "pinned", "device", "array",
		"managed", "device static", "managed static" };
	uint8_t found = 0;
	for (uint8_t i = 1; i < ACTIVITY_MEMORY_KINDS; i++) {
		const char end =
			begins(text, memory_kinds[i]) ? text[strlen(memory_kinds[i])] : '\0';
		if (end == ')' || end == ' ')
			found = i;
	}
	return found;
}

/* "Memcpy DtoH (…", or as others write it: "MemcpyD2H", "CopyHostToDevice". */
static uint8_t direction_of(const char *name)
{
	static const char *const directions[] = { "", "htod", "dtoh", "htoa", "atoh", "atoa",
		"atod", "dtoa", "dtod", "htoh", "ptop" };
	static const struct {
		const char *word;
		uint8_t what;
	} others[] = { { "H2D", COPY_HTOD }, { "HostToDevice", COPY_HTOD }, { "D2H", COPY_DTOH },
		{ "DeviceToHost", COPY_DTOH }, { "D2D", COPY_DTOD },
		{ "DeviceToDevice", COPY_DTOD }, { "H2H", COPY_HTOH }, { "HostToHost", COPY_HTOH },
		{ "P2P", COPY_PTOP } };
	const char *word = strchr(name, ' ');
	for (uint8_t i = 1; word && i < COPY_DIRECTIONS; i++)
		if (begins(word + 1, directions[i]))
			return i;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (strstr(name, others[i].word))
			return others[i].what;
	return 0;
}

void import_memcpy_name(struct gpu_activity *w, const char *name)
{
	const char *from = strchr(name, '('), *to = strstr(name, "-> ");
	w->what = w->kind == GPU_MEMCPY ? direction_of(name) : 0;
	if (w->what)
		w->valid |= GPU_HAS_WHAT;
	w->from = from ? memory_kind_of(from + 1) : 0;
	w->to = to ? memory_kind_of(to + 3) : 0;
	if (w->from || w->to)
		w->valid |= GPU_HAS_MEMORY_KINDS;
}

void import_sync_name(struct gpu_activity *w, const char *name)
{
	static const char *const syncs[] = { "", "event sync", "stream wait", "stream sync",
		"context sync" };
	for (uint8_t i = 1; i < sizeof syncs / sizeof syncs[0]; i++) {
		if (begins(name, syncs[i])) {
			w->what = i;
			w->valid |= GPU_HAS_WHAT;
		}
	}
}
