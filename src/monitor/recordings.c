/* See recordings.h. */
#include "monitor/recordings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/schema.h"
#include "trace/trace.h"

#include "base/banned.h"

/* ---- finding them ---- */

static void recording_free(struct recording *r)
{
	if (r) {
		map_fini(&r->chunks);
		array_free(&r->counts);
	}
	free(r);
}

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

static int find_recording(
	struct recordings *r, const char *path, const struct stat *st, uint32_t *ret_index)
{
	for (size_t i = 0; i < r->all.n; i++)
		if (r->all.v[i]->inode == st->st_ino && r->all.v[i]->device == st->st_dev) {
			*ret_index = (uint32_t)i;
			return 0;
		}
	struct recording *new = calloc(1, sizeof *new);
	struct recording **to = new ? array_push(&r->all) : NULL;
	if (!to) {
		free(new);
		return -ENOMEM;
	}
	new->device = st->st_dev;
	new->inode = st->st_ino;
	new->first = true;
	snprintf(new->path, sizeof new->path, "%s", path);
	*to = new;
	*ret_index = (uint32_t)r->all.n - 1;
	return 0;
}

static int add_process(struct recordings *r, uint32_t pid, const char *path, const struct stat *st)
{
	uint32_t index;
	const int e = find_recording(r, path, st, &index);
	struct recorded *p = e ? NULL : array_push(&r->processes);
	if (!p)
		return -ENOMEM;
	*p = (struct recorded){ .pid = pid, .recording = index };
	r->all.v[index]->seen = true;
	return 0;
}

/* The trace that a process writes to, by its mappings; the first. */
static int look_at_process(struct recordings *r, const char *pid)
{
	char path[64], line[PATH_MAX + 128];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%.20s/maps", pid);
	FILE *maps = fopen(path, "re");
	int e = 0;
	bool found = false;
	while (maps && !found && fgets(line, sizeof line, maps)) {
		char *name = strchr(line, '/');
		if (!name || !strstr(line, " rw-s"))
			continue;
		name[strcspn(name, "\n")] = 0;
		found = is_written(name, &st);
		if (found)
			e = add_process(r, (uint32_t)strtoul(pid, NULL, 10), name, &st);
	}
	if (maps)
		fclose(maps);
	return e;
}

/* weir record and its like map the file as well, and are none of the program's. */
static bool is_weir(const char *pid)
{
	char path[64], exe[PATH_MAX];
	snprintf(path, sizeof path, "/proc/%.20s/exe", pid);
	const ssize_t n = readlink(path, exe, sizeof exe);
	return n >= 5 && !memcmp(exe + n - 5, "/weir", 5);
}

static bool is_own_process(int proc, const char *name)
{
	struct stat st;
	return *name >= '1' && *name <= '9' && !fstatat(proc, name, &st, 0) &&
	       st.st_uid == geteuid() && !is_weir(name);
}

static int find_processes(struct recordings *r)
{
	DIR *proc = opendir("/proc");
	int e = 0;
	for (struct dirent *d; proc && !e && (d = readdir(proc));)
		if (is_own_process(dirfd(proc), d->d_name))
			e = look_at_process(r, d->d_name);
	if (proc)
		closedir(proc);
	return e;
}

/* ---- counting ---- */

static bool is_launch(const struct schema_fn *fn)
{
	return fn && (fn->kind == CALL_LAUNCH || fn->kind == CALL_GRAPHLAUNCH);
}

static void count_records(const struct trace *t, const struct chunk_buf *buf, struct counted *c)
{
	struct records it = records_of(buf);
	c->calls = c->launches = 0;
	for (const struct record *r; (r = records_next(&it));) {
		c->calls++;
		c->launches += !r->result && !(r->flags & RECORD_CAPTURED) &&
			       is_launch(schema_find(&t->schema, r->fn));
	}
}

/* Of launches `bytes` says how many were captured. */
static void count_counters(const struct trace *t, const struct chunk_buf *buf, struct counted *c)
{
	const struct counter *of = (const struct counter *)buf->payload;
	c->calls = c->launches = 0;
	for (size_t id = 0; id < buf->bytes / sizeof *of; id++) {
		const uint64_t not_run = of[id].errors + of[id].bytes;
		c->calls += of[id].count;
		if (is_launch(schema_find(&t->schema, (uint32_t)id)) && of[id].count > not_run)
			c->launches += of[id].count - not_run;
	}
}

static int count_chunk(struct recording *r, const struct trace *t, size_t i, struct chunk_buf *buf)
{
	const struct chunk_ref *ref = &t->chunks[i];
	const struct chunk_header *h = &ref->head;
	const bool counters = h->kind == CHUNK_COUNTERS;
	if (h->kind != CHUNK_EVENTS && !counters)
		return 0;
	struct counted *c = MAP_ROW(&r->chunks,
		MAP_KEY((uint64_t)h->pid << 32 | h->tid, h->identity ^ h->process_start, h->seq,
			h->kind),
		&r->counts, (struct counted){ .pid = h->pid });
	if (!c)
		return -ENOMEM;
	if (c->over)
		return 0;
	c->over = !counters && (ref->packed || h->state != CHUNK_OPEN);
	if ((c->over && r->first) || trace_load(t, i, buf, NULL))
		return 0;
	if (counters)
		count_counters(t, buf, c);
	else
		count_records(t, buf, c);
	return 0;
}

static int count_recording(struct recording *r)
{
	struct trace *t;
	struct chunk_buf buf = { 0 };
	int e = 0;
	if (trace_open(r->path, &t, NULL))
		return 0;
	for (size_t i = 0; !e && i < t->chunk_count; i++)
		e = count_chunk(r, t, i, &buf);
	r->lost = t->header.lost;
	r->bytes = t->size;
	r->first = false;
	chunk_buf_fini(&buf);
	trace_close(t);
	return e;
}

static void sum_up(const struct recordings *r, struct recorded *p)
{
	const struct recording *of = r->all.v[p->recording];
	for (size_t i = 0; i < of->counts.n; i++)
		if (of->counts.v[i].pid == p->pid) {
			p->calls += of->counts.v[i].calls;
			p->launches += of->counts.v[i].launches;
		}
}

static void forget_ended(struct recordings *r)
{
	for (size_t i = 0; i < r->all.n; i++)
		if (!r->all.v[i]->seen) {
			recording_free(r->all.v[i]);
			r->all.v[i--] = r->all.v[--r->all.n];
		}
}

int recordings_look(struct recordings *r)
{
	forget_ended(r); /* whom the look before did not see */
	for (size_t i = 0; i < r->all.n; i++)
		r->all.v[i]->seen = false;
	r->processes.n = 0;
	int e = find_processes(r);
	for (size_t i = 0; !e && i < r->all.n; i++)
		if (r->all.v[i]->seen)
			e = count_recording(r->all.v[i]);
	for (size_t i = 0; !e && i < r->processes.n; i++)
		sum_up(r, &r->processes.v[i]);
	return e;
}

void recordings_fini(struct recordings *r)
{
	for (size_t i = 0; i < r->all.n; i++)
		recording_free(r->all.v[i]);
	array_free(&r->all);
	array_free(&r->processes);
}
