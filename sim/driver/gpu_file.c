/* See gpu_file.h. */
#include "driver/gpu_file.h"
#include "driver/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	VERSION = 1,
	MAX_DEVICES = 16,
	LAWS_AT = 65536,
	PARTS = 1000000, /* of the speed */
	LOCK_NS = 100000000,
	LOOK_NS = 5000000, /* at least so often somebody who waits looks whether others are alive */
};

static const char magic[8] = "weirgpu";

/* The settings on which processes that share a device must agree. */
struct settings {
	uint64_t law_size, memory, slice_ns, switch_ns, speed; /* in millionths */
	uint32_t devices, mps;
};

struct member {
	uint64_t start; /* of the process, as in /proc/PID/stat */
	uint64_t stack; /* where it begins: elsewhere after each exec(); 0: not told */
	uint64_t used[MAX_DEVICES];
	int32_t priority, sms;
	int32_t pid; /* 0: nobody.  Written last, cleared first */
};

struct gpu_file {
	char magic[8];
	uint32_t version;
	uint32_t changing; /* whoever has the lock is changing a law */
	uint32_t epoch;    /* how often the laws had to begin anew */
	struct settings settings;
	uint64_t base_ns; /* CLOCK_MONOTONIC at the device's 0 */
	pthread_mutex_t lock;
	struct member members[LAW_CLIENTS];
};
_Static_assert(sizeof(struct gpu_file) <= LAWS_AT, "the laws are behind the header");

static struct gpu_file *file;
static unsigned me;
static uint32_t epoch;
static uint64_t looked_ns;

static struct law *law_of(unsigned device)
{
	const size_t each = (law_size() + LAWS_AT - 1) / LAWS_AT * LAWS_AT;

	return (struct law *)((char *)file + LAWS_AT + device * each);
}

static size_t file_size(void)
{
	return LAWS_AT + (size_t)script.devices * ((law_size() + LAWS_AT - 1) / LAWS_AT * LAWS_AT);
}

bool gpu_shared(void)
{
	return file != NULL;
}

static uint64_t host_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t gpu_now_ns(void)
{
	const uint64_t host = host_now_ns() - file->base_ns;

	return (uint64_t)((__uint128_t)host * file->settings.speed / PARTS);
}

static uint64_t host_interval(uint64_t ns)
{
	const uint64_t speed = file->settings.speed;

	return (uint64_t)(((__uint128_t)ns * PARTS + speed - 1) / speed);
}

uint64_t gpu_host_ns(uint64_t ns)
{
	return file->base_ns + host_interval(ns);
}

uint64_t gpu_told_ns(uint64_t ns)
{
	return script.host_clock ? host_interval(ns) : ns;
}

/* When a process started, in the kernel's ticks; false when it is not there or has ended. */
static bool read_stat(int pid, struct member *ret)
{
	char path[32], text[1024];
	unsigned long long start = 0, stack = 0;
	char state = 'X';

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	const char *p = strrchr(text, ')'); /* the name before it may hold anything */
	if (!p ||
		sscanf(p + 1,
			" %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			"%llu %*s %*s %*s %*s %*s %llu",
			&state, &start, &stack) != 3)
		return false;
	ret->start = start;
	ret->stack = stack;
	return state != 'Z' && state != 'X';
}

static bool alive(const struct member *m)
{
	struct member now;

	return m->pid && read_stat(m->pid, &now) && now.start == m->start &&
	       (!now.stack || !m->stack || now.stack == m->stack);
}

static void open_client(unsigned client)
{
	const struct member *m = &file->members[client];

	for (unsigned d = 0; d < file->settings.devices; d++)
		law_client_open(law_of(d), client, m->priority, (unsigned)m->sms);
}

static void begin_laws(void)
{
	const struct law_device device = {
		.sharing = file->settings.mps ? LAW_MPS : LAW_SLICES,
		.sms = DEVICE_SMS,
		.slice_ns = file->settings.slice_ns,
		.switch_ns = file->settings.switch_ns,
	};

	for (unsigned d = 0; d < file->settings.devices; d++)
		law_reset(law_of(d), &device);
	for (unsigned i = 0; i < LAW_CLIENTS; i++)
		if (file->members[i].pid)
			open_client(i);
}

static void unlock(void)
{
	file->changing = 0;
	pthread_mutex_unlock(&file->lock);
}

/* The laws are at the present, and may be changed until unlock(). */
/* One that was woken may have been killed before it had the lock: who waits looks now and then. */
static int wait_for_lock(void)
{
	int r;

	do {
		struct timespec t;

		clock_gettime(CLOCK_REALTIME, &t);
		const long ns = t.tv_nsec + LOCK_NS;
		t.tv_sec += ns / 1000000000;
		t.tv_nsec = ns % 1000000000;
		r = pthread_mutex_timedlock(&file->lock, &t);
	} while (r == ETIMEDOUT);
	return r;
}

static void lock(void)
{
	if (wait_for_lock() == EOWNERDEAD) {
		pthread_mutex_consistent(&file->lock);
		if (file->changing) {
			file->epoch++;
			begin_laws();
		}
	}
	file->changing = 1;
	const uint64_t now = gpu_now_ns();
	for (unsigned d = 0; d < file->settings.devices; d++)
		law_advance(law_of(d), now);
}

static void remove_member(unsigned i)
{
	file->members[i].pid = 0;
	for (unsigned d = 0; d < file->settings.devices; d++)
		law_client_close(law_of(d), i);
	file->members[i] = (struct member){ 0 };
}

/* Takes those off the device that have died.  Under the lock. */
static void remove_dead(void)
{
	for (unsigned i = 0; i < LAW_CLIENTS; i++)
		if (i != me && file->members[i].pid && !alive(&file->members[i]))
			remove_member(i);
	looked_ns = host_now_ns();
}

static bool anybody_alive(const struct gpu_file *header)
{
	for (unsigned i = 0; i < LAW_CLIENTS; i++)
		if (alive(&header->members[i]))
			return true;
	return false;
}

static bool complain(const char *what)
{
	fprintf(stderr, "weir sim: the shared device gpu=%s: %s\n", script.gpu, what);
	return false;
}

static struct settings wanted(void)
{
	return (struct settings){
		.law_size = law_size(),
		.memory = script.memory_bytes,
		.slice_ns = script.slice_ns,
		.switch_ns = script.switch_ns,
		.speed = (uint64_t)llround(script.speed * PARTS),
		.devices = (uint32_t)script.devices,
		.mps = script.mps,
	};
}

static void make_lock(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&file->lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static void begin_file(void)
{
	*file = (struct gpu_file){ .version = VERSION, .settings = wanted() };
	file->base_ns = host_now_ns();
	make_lock();
	begin_laws();
	memcpy(file->magic, magic, sizeof magic);
}

/* MPS's own ways to say it: a percentage of the SMs, and 1 for a priority below normal. */
static void read_mps(struct member *m)
{
	const char *percent = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	const char *priority = getenv("CUDA_MPS_CLIENT_PRIORITY");
	const double share = script.mps && percent ? strtod(percent, NULL) : 0;

	if (share > 0 && share < 100) {
		m->sms = (int32_t)lround(share / 100 * DEVICE_SMS);
		m->sms = m->sms ? m->sms : 1;
	}
	m->priority = script.mps && priority && !strcmp(priority, "1") ? -1 : 0;
}

static bool join(void)
{
	struct member new = { .pid = getpid() };
	unsigned i = 0;

	read_stat(new.pid, &new);
	read_mps(&new);
	me = LAW_CLIENTS;
	lock();
	/* This very process was here before it called exec(). */
	for (unsigned k = 0; k < LAW_CLIENTS; k++)
		if (file->members[k].pid == new.pid)
			remove_member(k);
	remove_dead();
	while (i < LAW_CLIENTS && file->members[i].pid)
		i++;
	if (i < LAW_CLIENTS) {
		const int32_t pid = new.pid;

		new.pid = 0;
		file->members[i] = new;
		open_client(i);
		file->members[i].pid = pid;
		me = i;
		epoch = file->epoch;
	}
	unlock();
	return i < LAW_CLIENTS || complain("64 processes use it already");
}

static bool map_file(int fd)
{
	void *map = mmap(NULL, file_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return complain(strerror(errno));
	file = map;
	return true;
}

static bool is_own(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		!(st.st_mode & 022))
		return true;
	return complain("it is no file of one's own that others can't write to");
}

/* Under flock(): nobody else comes or makes it meanwhile. */
static bool find_or_make(int fd)
{
	const struct settings mine = wanted();
	struct gpu_file *header = calloc(1, sizeof *header);

	if (!header)
		return complain(strerror(ENOMEM));
	const ssize_t size = pread(fd, header, sizeof *header, 0);
	const bool empty = size == 0 || !header->magic[0]; /* its maker died before it was whole */
	const bool ours = size == sizeof *header && !memcmp(header->magic, magic, sizeof magic) &&
			  header->version == VERSION;
	const bool used = ours && anybody_alive(header);
	const bool agrees = !memcmp(&mine, &header->settings, sizeof mine);
	free(header);
	if (!empty && !ours)
		return complain("it is no shared device, or another version's: remove it");
	if (used && !agrees)
		return complain("a process uses it with another sharing, speed, slice, switch, "
				"memory, or number of devices");
	if (used)
		return map_file(fd);
	if (ftruncate(fd, 0) || ftruncate(fd, (off_t)file_size()))
		return complain(strerror(errno));
	if (!map_file(fd))
		return false;
	begin_file();
	return true;
}

bool gpu_attach(void)
{
	if (!script.gpu[0])
		return true;
	const int fd = open(script.gpu, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return complain(strerror(errno));
	flock(fd, LOCK_EX);
	const bool ok = is_own(fd) && find_or_make(fd) && join();
	flock(fd, LOCK_UN); /* the mapping would keep it */
	close(fd);
	if (!ok)
		file = NULL;
	return ok;
}

int gpu_submit(int device, struct law_work *work, uint64_t *ret_id)
{
	int r = -ESTALE;

	lock();
	if (epoch == file->epoch) {
		work->client = me;
		r = law_submit(law_of((unsigned)device), work, ret_id);
	}
	unlock();
	return r;
}

static void look_around(void)
{
	if (host_now_ns() - looked_ns > LOOK_NS)
		remove_dead();
}

int gpu_pop(struct law_done *ret_done, size_t max, size_t *ret_count)
{
	size_t n = 0;
	int r = 0;

	lock();
	look_around();
	if (epoch != file->epoch) {
		epoch = file->epoch;
		r = -ESTALE;
	}
	for (unsigned d = 0; d < file->settings.devices; d++)
		while (!r && n < max && law_pop(law_of(d), me, &ret_done[n]))
			n++;
	unlock();
	*ret_count = n;
	return r;
}

uint64_t gpu_wake_ns(void)
{
	uint64_t wake = host_now_ns() + LOOK_NS;

	lock();
	for (unsigned d = 0; d < file->settings.devices; d++) {
		const uint64_t next = law_soonest(law_of(d), me);

		if (next != LAW_NEVER && gpu_host_ns(next) < wake)
			wake = gpu_host_ns(next);
	}
	unlock();
	return wake;
}

static uint64_t used_by_all(int device)
{
	uint64_t used = 0;

	for (unsigned i = 0; i < LAW_CLIENTS; i++)
		if (file->members[i].pid)
			used += file->members[i].used[device];
	return used;
}

bool gpu_set_memory(int device, uint64_t bytes)
{
	const uint64_t memory = file->settings.memory;
	uint64_t *mine = &file->members[me].used[device];

	lock();
	bool fits = bytes <= *mine || used_by_all(device) - *mine + bytes <= memory;
	if (!fits) { /* who has what is missing may be dead */
		remove_dead();
		fits = used_by_all(device) - *mine + bytes <= memory;
	}
	if (fits)
		*mine = bytes;
	unlock();
	return fits;
}

uint64_t gpu_free_memory(int device)
{
	lock();
	remove_dead();
	const uint64_t used = used_by_all(device);
	unlock();
	return used < file->settings.memory ? file->settings.memory - used : 0;
}
