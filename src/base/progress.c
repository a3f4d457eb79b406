/* The progress bar: see progress.h. */
#include "base/monotonic.h"
#include "base/progress.h"

#include <stdio.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull

void progress_init(struct progress *p, const char *what)
{
	*p = (struct progress){ .what = what, .start_ns = monotonic_ns() };
	p->terminal = isatty(STDERR_FILENO) == 1;
}

void progress_show(void *progress, uint64_t done, uint64_t all)
{
	struct progress *p = progress;
	if (!p->terminal || !all)
		return;
	const uint64_t now = monotonic_ns();
	if (now - p->start_ns < SECOND_NS || now - p->shown_ns < SECOND_NS / 10)
		return;
	p->shown_ns = now;
	const int filled = (int)(40.0 * (double)done / (double)all);
	fprintf(stderr, "\r%s [%.*s%*s] %3d %%", p->what, filled,
		"########################################", 40 - filled, "",
		(int)(100.0 * (double)done / (double)all));
	fflush(stderr);
}

void progress_fini(struct progress *p)
{
	if (p->shown_ns)
		fputs("\r\033[K", stderr);
	p->shown_ns = 0;
}
