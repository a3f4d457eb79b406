/*
 * Two buffers: loops fill one under a lock that is held for the time of a copy, and the thread
 * writes the other without it. The file blocks, so a slow one delays this thread alone.
 */
#include "serve/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CLOSE_S 5

struct request_log {
	int fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct buf waiting, writing; /* the first with the lock; the second is the thread's */
	bool ends;                   /* with the lock */
	bool torn;                   /* the file ends in a part of a line; the thread's */
	_Atomic uint64_t lost;       /* stands for itself */
};

static uint64_t lines_in(const char *text, size_t n)
{
	uint64_t lines = 0;
	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	return lines;
}

static void lose(struct request_log *log, const char *text, size_t n)
{
	add_relaxed(&log->lost, lines_in(text, n));
}

static size_t write_all(struct request_log *log, const char *text, size_t n)
{
	struct stat st;
	const bool there = fstat(log->fd, &st) == 0 && st.st_nlink;
	size_t wrote = 0;
	while (there && wrote < n) {
		const ssize_t more = write(log->fd, text + wrote, n - wrote);
		if (more <= 0 && errno != EINTR)
			break;
		wrote += more > 0 ? (size_t)more : 0;
	}
	return wrote;
}

/* A part of a line is ended before the next ones, so that those can be read. */
static void write_lines(struct request_log *log)
{
	const struct buf *b = &log->writing;
	log->torn = log->torn && write_all(log, "\n", 1) == 0;
	const size_t wrote = log->torn ? 0 : write_all(log, b->v, b->n);
	log->torn = log->torn || (wrote && b->v[wrote - 1] != '\n');
	lose(log, b->v + wrote, b->n - wrote);
	log->writing.n = 0;
}

static void *run(void *data)
{
	struct request_log *log = data;
	for (;;) {
		pthread_mutex_lock(&log->lock);
		while (!log->waiting.n && !log->ends)
			pthread_cond_wait(&log->work, &log->lock);
		const struct buf empty = log->writing;
		log->writing = log->waiting;
		log->waiting = empty;
		pthread_mutex_unlock(&log->lock);
		if (!log->writing.n)
			return NULL;
		write_lines(log);
	}
}

int log_open(const char *path, struct request_log **ret, struct error *err)
{
	/* If nobody has a pipe open, opening it would wait. */
	const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND))
		return error_set(err, -EINVAL, "--log=%s: %s", path, strerror(errno));
	struct request_log *log = xcalloc(1, sizeof *log);
	log->fd = fd;
	pthread_mutex_init(&log->lock, NULL);
	pthread_cond_init(&log->work, NULL);
	const int code = pthread_create(&log->thread, NULL, run, log);
	if (code) {
		close(fd);
		free(log);
		return error_set(
			err, -code, "the thread that writes --log=%s does not start", path);
	}
	*ret = log;
	return 0;
}

void log_put(struct request_log *log, struct buf *lines)
{
	pthread_mutex_lock(&log->lock);
	const bool fits = log->waiting.n + lines->n <= LOG_ROOM;
	if (fits)
		buf_put_slice(&log->waiting, buf_slice(lines));
	pthread_cond_signal(&log->work);
	pthread_mutex_unlock(&log->lock);
	if (!fits)
		lose(log, lines->v, lines->n);
	lines->n = 0;
}

uint64_t log_lost(const struct request_log *log)
{
	return log ? load_relaxed(&log->lost) : 0;
}

void log_close(struct request_log *log)
{
	struct timespec until;
	if (!log)
		return;
	pthread_mutex_lock(&log->lock);
	log->ends = true;
	pthread_cond_signal(&log->work);
	pthread_mutex_unlock(&log->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CLOSE_S;
	if (pthread_timedjoin_np(log->thread, NULL, &until)) {
		pthread_detach(log->thread);
		return;
	}
	close(log->fd);
	pthread_cond_destroy(&log->work);
	pthread_mutex_destroy(&log->lock);
	buf_free(&log->waiting, &log->writing);
	free(log);
}
