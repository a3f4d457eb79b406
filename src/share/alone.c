/*
 * See alone.h.  A line: the GPU's UUID, the key of command line and folder, three durations in ns,
 * how many requests come together, how much of the SMs they fill, whether that was under MPS, and
 * whether it is a guess.
 */
#include "share/alone.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LONGEST_NS 3.6e12
#define LINE       160
#define LONG_NS    20e6 /* ten times what best effort has in flight at first, at most */
#define QUICKER    0.8  /* without MPS */
#define NARROW     75   /* per cent: policy fit caps kernels beside them */

static bool is_possible(const struct slowdown_alone *a)
{
	return a->p50_ns >= 1 && a->p50_ns <= a->p90_ns && a->p90_ns <= a->p99_ns &&
	       a->p99_ns <= LONGEST_NS && a->run >= 1 && a->run <= SHARE_RUN;
}

static bool read_uuid(const char *text, uint8_t uuid[16])
{
	for (int i = 0; i < 16; i++) {
		unsigned byte;
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		uuid[i] = (uint8_t)byte;
	}
	return true;
}

static void read_line(struct known *k, const char *line)
{
	char uuid[33];
	struct known_program p;
	if (sscanf(line, "%32[0-9a-f] %" SCNx64 " %lf %lf %lf %lf %" SCNu32 " %" SCNu32 " %" SCNu32,
		    uuid, &p.command, &p.alone.p50_ns, &p.alone.p90_ns, &p.alone.p99_ns,
		    &p.alone.run, &p.fills, &p.mps, &p.guess) == 9 &&
		strlen(uuid) == 32 && read_uuid(uuid, p.uuid))
		known_put(k, &p);
}

void known_read(struct known *k, const char *path)
{
	char line[LINE];
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	if (fd >= 0 && !f)
		close(fd);
	for (int i = 0; f && i < 4 * (int)KNOWN_MOST && fgets(line, sizeof line, f); i++)
		read_line(k, line);
	if (f)
		fclose(f);
	k->changed = false;
}

static void write_line(FILE *f, const struct known_program *p)
{
	for (int i = 0; i < 16; i++)
		fprintf(f, "%02x", p->uuid[i]);
	fprintf(f, " %016" PRIx64 " %.0f %.0f %.0f %.1f %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
		p->command, p->alone.p50_ns, p->alone.p90_ns, p->alone.p99_ns, p->alone.run,
		p->fills, p->mps, p->guess);
}

bool known_write(struct known *k, const char *path)
{
	char fresh[512];
	if ((size_t)snprintf(fresh, sizeof fresh, "%s.new", path) >= sizeof fresh)
		return false;
	unlink(fresh); /* of one that was killed here */
	const int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !f)
		close(fd);
	if (!f)
		return false;
	for (uint32_t i = 0; i < k->count; i++)
		write_line(f, &k->program[i]);
	const bool whole = !ferror(f);
	if (fclose(f) || !whole || rename(fresh, path)) {
		unlink(fresh);
		return false;
	}
	k->changed = false;
	return true;
}

/* The newest; count: there is none. */
static uint32_t index_of(const struct known *k, const uint8_t uuid[16], uint64_t command)
{
	for (uint32_t i = k->count; i-- > 0;)
		if (k->program[i].command == command &&
			(!uuid || !memcmp(k->program[i].uuid, uuid, 16)))
			return i;
	return k->count;
}

const struct known_program *known_find(
	const struct known *k, const uint8_t uuid[16], uint64_t command)
{
	const uint32_t i = index_of(k, uuid, command);
	return command && i < k->count ? &k->program[i] : NULL;
}

void known_put(struct known *k, const struct known_program *p)
{
	if (!p->command || !is_possible(&p->alone) || p->fills > 100 || p->mps > 1 || p->guess > 1)
		return;
	uint32_t at = index_of(k, p->uuid, p->command);
	if (at < k->count && p->guess && !k->program[at].guess)
		return;
	if (at == k->count && k->count == KNOWN_MOST)
		at = 0; /* the oldest */
	if (at < k->count) {
		memmove(&k->program[at], &k->program[at + 1],
			(k->count - at - 1) * sizeof *k->program);
		k->count--;
	}
	k->program[k->count++] = *p;
	k->changed = true;
}

void known_remind(const struct known_program *k, uint32_t mps, struct slowdown_program *p)
{
	slowdown_remember(p, &k->alone, k->guess || k->mps != mps);
}

bool known_takes_turns(const struct known_program *p)
{
	const double least = p->mps ? LONG_NS : QUICKER * LONG_NS;
	return p->alone.p50_ns * p->alone.run >= least && (!p->fills || p->fills > NARROW);
}
