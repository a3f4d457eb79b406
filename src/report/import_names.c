/* What Kineto's names of copies, sets and waits say.  See import_source.h. */
#include <string.h>
#include <strings.h>

#include "report/import_source.h"

#include "base/banned.h"

static bool begins(const char *text, const char *word)
{
	return !strncasecmp(text, word, strlen(word));
}

/* Behind "Device" may stand "Static", which is tried later and wins. */
static uint8_t place_of(const char *text)
{
	static const char *const places[] = { "", "pageable", "pinned", "device", "array",
		"managed", "device static", "managed static" };
	uint8_t found = 0;
	for (uint8_t i = 1; i < PLACES; i++) {
		const char end = begins(text, places[i]) ? text[strlen(places[i])] : '\0';
		if (end == ')' || end == ' ')
			found = i;
	}
	return found;
}

void import_copy_name(struct device_work *w, const char *name)
{
	static const char *const directions[] = { "", "htod", "dtoh", "htoa", "atoh", "atoa",
		"atod", "dtoa", "dtod", "htoh", "ptop" };
	const char *word = strchr(name, ' ');
	const char *from = strchr(name, '('), *to = strstr(name, "-> ");
	for (uint8_t i = 1; word && w->kind == WORK_COPY && i < COPY_DIRECTIONS; i++) {
		if (begins(word + 1, directions[i])) {
			w->what = i;
			w->valid |= WORK_HAS_WHAT;
		}
	}
	w->from = from ? place_of(from + 1) : 0;
	w->to = to ? place_of(to + 3) : 0;
	if (w->from || w->to)
		w->valid |= WORK_HAS_PLACES;
}

void import_wait_name(struct device_work *w, const char *name)
{
	static const char *const waits[] = { "", "event sync", "stream wait", "stream sync",
		"context sync" };
	for (uint8_t i = 1; i < sizeof(waits) / sizeof(waits[0]); i++) {
		if (begins(name, waits[i])) {
			w->what = i;
			w->valid |= WORK_HAS_WHAT;
		}
	}
}
