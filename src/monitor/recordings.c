/* Finds the recordings that are being written. */
#include "monitor/recordings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/sort.h"
#include "trace/trace.h"

#define BELIEVED_LEAST_NS 200000000u

/* Whether a regular file of this user's is a trace that is being written. */
static bool is_written(const char *path, struct stat *ret_st)
{
	struct trace_header h;
	if (stat(path, ret_st) || !S_ISREG(ret_st->st_mode) || ret_st->st_uid != geteuid() ||
		ret_st->st_size < TRACE_GRAIN)
		return false;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	const bool is = !read_at(fd, &h, sizeof h, 0) && !memcmp(h.magic, TRACE_MAGIC, 8) &&
			h.form == TRACE_RAW && h.state == TRACE_RECORDING;
	close(fd);
	return is;
}

/* The trace that a process writes to, by its mappings; the first. */
static bool find_trace(uint32_t pid, char ret_path[PATH_MAX], struct stat *ret_st)
{
	char path[64], line[PATH_MAX + 128];
	bool found = false;
	snprintf(path, sizeof path, "/proc/%u/maps", pid);
	FILE *maps = fopen(path, "re");
	while (maps && !found && fgets(line, sizeof line, maps)) {
		char *name = strchr(line, '/');
		if (!name || !strstr(line, " rw-s"))
			continue;
		name[strcspn(name, "\n")] = 0;
		found = is_written(name, ret_st);
		if (found)
			snprintf(ret_path, PATH_MAX, "%s", name);
	}
	if (maps)
		fclose(maps);
	return found;
}

/* weir record and its like map the file as well, and are none of the program's. */
static bool is_weir(uint32_t pid)
{
	char path[64], exe[PATH_MAX];
	snprintf(path, sizeof path, "/proc/%u/exe", pid);
	const ssize_t n = readlink(path, exe, sizeof exe);
	return n >= 5 && !memcmp(exe + n - 5, "/weir", 5);
}

int recordings_find(uint32_t pid, char ret_path[PATH_MAX])
{
	char path[32];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%u", pid);
	if (stat(path, &st))
		return -ESRCH;
	if (st.st_uid != geteuid())
		return -EPERM;
	return find_trace(pid, ret_path, &st) ? 0 : -ENOENT;
}

static void recording_free(struct recording *r)
{
	if (r)
		follow_close(r->follow);
	free(r);
}

/* NULL when it can't be followed yet: its schema may still be to come. */
static struct recording *recording_of(struct recordings *r, const char *path, const struct stat *st)
{
	for (size_t i = 0; i < r->all.n; i++)
		if (r->all.v[i]->inode == st->st_ino && r->all.v[i]->device == st->st_dev)
			return r->all.v[i];
	struct recording *new = xcalloc(1, sizeof *new);
	new->device = st->st_dev;
	new->inode = st->st_ino;
	snprintf(new->path, sizeof new->path, "%s", path);
	struct recording **to = follow_open(path, &new->follow) ? NULL : array_push(&r->all);
	if (!to) {
		recording_free(new);
		return NULL;
	}
	*to = new;
	return new;
}

static bool is_over(const struct recording *r)
{
	return recording_header(r)->state != TRACE_RECORDING;
}

/* The recordings that nobody writes to any more. Their supposed writers are looked at anew. */
static void forget_ended(struct recordings *r)
{
	for (size_t i = 0; i < r->all.n; i++) {
		struct recording *of = r->all.v[i];
		if (of->seen && !is_over(of))
			continue;
		for (size_t k = 0; k < r->watched.n; k++)
			if (r->watched.v[k].recording == of)
				r->watched.v[k] = (struct watched){ .pid = r->watched.v[k].pid };
		recording_free(of);
		r->all.v[i--] = r->all.v[--r->all.n];
	}
}

static void name_of_process(uint32_t pid, char ret[RECORDINGS_NAME])
{
	char path[32];
	snprintf(path, sizeof path, "/proc/%u/comm", pid);
	FILE *in = fopen(path, "re");
	if (!in || !fgets(ret, RECORDINGS_NAME, in))
		snprintf(ret, RECORDINGS_NAME, "?");
	ret[strcspn(ret, "\n")] = 0;
	if (in)
		fclose(in);
}

ORDERING(by_pid, struct watched, ORDER(a->pid, b->pid))

static const struct watched *known(const struct recordings *r, uint32_t pid)
{
	const struct watched key = { .pid = pid };
	return r->before.n ? bsearch(&key, r->before.v, r->before.n, sizeof key, by_pid) : NULL;
}

static void believe_for_a_while(struct watched *w, uint64_t now)
{
	const uint64_t quarter = (now - w->since_ns) / 4;
	const uint64_t least = MAX(quarter, BELIEVED_LEAST_NS);
	w->until_ns = now + MIN(least, RECORDINGS_BELIEVED_NS);
}

/* Weir cannot learn more of another user's process. */
static void find_out(struct recordings *r, struct watched *w, const struct stat *of, uint64_t now)
{
	char path[PATH_MAX];
	struct stat st;
	const uint64_t born =
		(uint64_t)of->st_ctim.tv_sec * 1000000000u + (uint64_t)of->st_ctim.tv_nsec;
	if (w->born_ns != born)
		*w = (struct watched){ .pid = w->pid, .since_ns = now, .born_ns = born };
	believe_for_a_while(w, now);
	w->recording = of->st_uid == geteuid() && !is_weir(w->pid) && find_trace(w->pid, path, &st)
			       ? recording_of(r, path, &st)
			       : NULL;
	if (w->recording)
		name_of_process(w->pid, w->name);
}

static void watch_process(struct recordings *r, int proc, const char *number, uint64_t now)
{
	const uint32_t pid = (uint32_t)strtoul(number, NULL, 10);
	const struct watched *before = known(r, pid);
	struct stat st;
	struct watched w = before ? *before : (struct watched){ .pid = pid };
	if (now >= w.until_ns) {
		if (fstatat(proc, number, &st, 0))
			return;
		find_out(r, &w, &st, now);
	}
	*array_push(&r->watched) = w;
	if (w.recording)
		w.recording->seen = true;
}

static void list_processes(struct recordings *r, uint64_t now)
{
	DIR *proc = opendir("/proc");
	for (struct dirent *d; proc && (d = readdir(proc));)
		if (*d->d_name >= '1' && *d->d_name <= '9')
			watch_process(r, dirfd(proc), d->d_name, now);
	if (proc)
		closedir(proc);
	SORT(r->watched, by_pid);
}

/* The known recordings, without those of processes that are gone. */
static void keep_processes(struct recordings *r)
{
	array_reserve(&r->watched, r->before.n);
	array_each(const struct watched, w, r->before) {
		if (w->recording && kill((pid_t)w->pid, 0))
			continue;
		r->watched.v[r->watched.n++] = *w;
		if (w->recording)
			w->recording->seen = true;
	}
}

static void find_processes(struct recordings *r)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (now < r->list_ns) {
		keep_processes(r);
		return;
	}
	list_processes(r, now);
	r->list_ns = now + RECORDINGS_LISTING * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun);
}

static void add_recorded(struct recordings *r, const struct watched *w)
{
	const struct follow_process *p = follow_find(w->recording->follow, w->pid);
	*array_push(&r->processes) = (struct recorded){ .pid = w->pid,
		.name = w->name,
		.recording = w->recording,
		.calls = p ? p->calls : 0,
		.launches = p ? p->launches : 0,
		.gpu_from_ns = p ? p->from_ns : 0,
		.gpu_until_ns = p ? p->until_ns : 0,
		.gpu_busy_ns = p ? p->busy_ns : 0,
		.gpu_look_from_ns = p ? p->look_from_ns : 0 };
}

void recordings_look(struct recordings *r, const struct follow_sink *to)
{
	array_turn(&r->watched, &r->before);
	r->processes.n = 0;
	for (size_t i = 0; i < r->all.n; i++)
		r->all.v[i]->seen = false;
	find_processes(r);
	for (size_t i = 0; i < r->all.n; i++)
		follow_look(r->all.v[i]->follow, to);
	forget_ended(r);
	for (size_t i = 0; i < r->watched.n; i++)
		if (r->watched.v[i].recording)
			add_recorded(r, &r->watched.v[i]);
}

void recordings_fini(struct recordings *r)
{
	for (size_t i = 0; i < r->all.n; i++)
		recording_free(r->all.v[i]);
	array_free(&r->all, &r->watched, &r->before, &r->processes);
}

const char *recordings_name(const struct recordings *r, uint32_t pid)
{
	const struct watched key = { .pid = pid };
	const struct watched *w =
		r->watched.n ? bsearch(&key, r->watched.v, r->watched.n, sizeof key, by_pid) : NULL;
	return w && w->recording ? w->name : "?";
}

const struct trace_header *recording_header(const struct recording *r)
{
	return follow_header(r->follow);
}
