/* Counts, prints and aborts on failed checks of Weir itself. */
#include "base/expect.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct expect_report first;

bool expect_broken(const char *file, int line, const char *what)
{
	if (EXPECT_ABORTS) {
		fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
		abort();
	}
	pthread_mutex_lock(&mutex);
	if (!first.count++) {
		first.file = file;
		first.line = line;
		first.what = what;
	}
	pthread_mutex_unlock(&mutex);
	return false;
}

struct expect_report expect_report(void)
{
	pthread_mutex_lock(&mutex);
	const struct expect_report copy = first;
	pthread_mutex_unlock(&mutex);
	return copy;
}
