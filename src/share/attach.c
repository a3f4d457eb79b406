/*
 * Attaches a process to the segment that programs share.
 *
 * The segment is System V shared memory. Nobody can shrink it, it needs no descriptor or server,
 * and the kernel frees it after the last process. Anybody who may write to a mapped file could
 * truncate it, and SIGBUS would end all readers. The file DIR/sched is read and written but never
 * mapped. It names the segment and keeps a person's settings for the next one.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <time.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "share/segment.h"

#define LOCK_TURNS 2000 /* milliseconds that the file is waited for */

/* The content of DIR/sched. */
struct share_name {
	char magic[8];
	uint32_t version, size; /* of the segment */
	struct share_identity identity;
	char policy[16];
	uint32_t open, unused;
	struct share_tuning tuning;
};

/* Opened; or -errno. */
static long open_directory(const char *path)
{
	struct stat st;
	const long fd =
		sys(openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (sys_failed(fd))
		return fd;
	if (sys_failed(sys(fstat, fd, &st)) || (long)st.st_uid != sys(geteuid) ||
		st.st_mode & 022) {
		sys(close, fd);
		return -EPERM;
	}
	return fd;
}

/* Whether some process is the arbiter there (arbiter.c). */
static bool has_arbiter(long directory)
{
	const long fd =
		sys(openat, directory, "arbiter", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (sys_failed(fd))
		return false;
	const bool held = sys(flock, fd, LOCK_SH | LOCK_NB) == -EWOULDBLOCK;
	sys(close, fd);
	return held;
}

static void nap(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	sys(nanosleep, &ms, NULL);
}

/* The owner of the lock needs it for some system calls, or was stopped in between. */
static long lock(long fd)
{
	long failed = -EWOULDBLOCK;
	for (int turn = 0; failed == -EWOULDBLOCK && turn < LOCK_TURNS; turn++) {
		failed = sys(flock, fd, LOCK_EX | LOCK_NB);
		if (failed == -EWOULDBLOCK)
			nap();
	}
	return failed == -EWOULDBLOCK ? -EBUSY : failed;
}

/* A child that was forked meanwhile has the descriptor as well. */
static void unlock(long fd)
{
	sys(flock, fd, LOCK_UN);
	sys(close, fd);
}

/* Returns 0 and holds the lock, or returns -errno. */
static long check_file(long fd)
{
	struct stat st;
	const long failed = sys(fstat, fd, &st);
	if (sys_failed(failed))
		return failed;
	if (!S_ISREG(st.st_mode))
		return -EEXIST;
	return (long)st.st_uid != sys(geteuid) || st.st_mode & 022 ? -ESTALE : lock(fd);
}

/* Returns the locked file, or -errno. */
static long open_file(long directory)
{
	const long fd = sys(openat, directory, "sched",
		O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (sys_failed(fd))
		return fd == -EISDIR || fd == -ENXIO ? -EEXIST : fd;
	const long failed = check_file(fd);
	if (!sys_failed(failed))
		return fd;
	sys(close, fd);
	return failed;
}

/* Returns 0, -ENODATA if the file is empty, or -errno. */
static long read_name(long fd, struct share_name *ret)
{
	const long n = sys(pread64, fd, ret, sizeof *ret, 0);
	const long head = offsetof(struct share_name, identity);
	if (n <= 0)
		return n ? n : -ENODATA;
	if (n < head || memcmp(ret->magic, SHARE_MAGIC, sizeof ret->magic))
		return -EBADMSG;
	if (ret->version != SHARE_VERSION || ret->size != sizeof(struct share_file))
		return -EINVAL;
	return n == sizeof *ret ? 0 : -EBADMSG;
}

/* A write beyond the limit of file sizes would raise SIGXFSZ. */
static long write_name(long fd, const struct share_name *name)
{
	struct rlimit limit;
	if (!sys_failed(sys(prlimit64, 0, RLIMIT_FSIZE, NULL, &limit)) &&
		limit.rlim_cur < sizeof *name)
		return -EFBIG;
	const long n = sys(pwrite64, fd, name, sizeof *name, 0);
	return sys_failed(n) ? n : n == sizeof *name ? 0 : -ENOSPC;
}

static struct share_name name_of(const struct share_file *f)
{
	struct share_name name = { .version = f->version,
		.size = f->size,
		.identity = f->identity,
		.open = load_relaxed(&f->arbiter.open),
		.tuning = f->tuning };
	memcpy(name.magic, SHARE_MAGIC, sizeof name.magic);
	memcpy(name.policy, f->arbiter.policy, sizeof name.policy);
	return name;
}

static uint64_t own_ipc_space(void)
{
	return share_space("/proc/self/ns/ipc");
}

static bool is_private(uint64_t id)
{
	struct shmid_ds ds;
	return !sys_failed(sys(shmctl, id, IPC_STAT, &ds)) &&
	       (long)ds.shm_perm.uid == sys(geteuid) && (ds.shm_perm.mode & 0777) == 0600 &&
	       ds.shm_segsz == sizeof(struct share_file);
}

/* NULL if the segment is gone, or if its id belongs to another segment now. */
static struct share_file *attach(const struct share_identity *identity)
{
	const long at = is_private(identity->id) ? sys(shmat, identity->id, NULL, 0) : -EINVAL;
	struct share_file *f = sys_failed(at) ? NULL : (struct share_file *)at;
	if (f && (memcmp(f->magic, SHARE_MAGIC, sizeof f->magic) || f->version != SHARE_VERSION ||
			 f->identity.key != identity->key)) {
		share_close(f);
		return NULL;
	}
	return f;
}

static uint64_t random_key(void)
{
	uint64_t key = 0;
	struct timespec t = { 0 };
	if (sys(getrandom, &key, sizeof key, 0) == sizeof key)
		return key;
	sys(clock_gettime, CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_nsec << 32 ^ (uint64_t)t.tv_sec ^ (uint64_t)sys(getpid) << 20;
}

/* The kernel removes the segment with the last process that has attached it. */
static long make_segment(struct share_file **ret)
{
	const long id = sys(shmget, IPC_PRIVATE, sizeof **ret, IPC_CREAT | 0600);
	if (sys_failed(id))
		return id;
	const long at = sys(shmat, id, NULL, 0);
	sys(shmctl, id, IPC_RMID, NULL);
	if (sys_failed(at))
		return at;
	struct share_file *f = (struct share_file *)at;
	f->version = SHARE_VERSION;
	f->size = sizeof *f;
	f->identity = (struct share_identity){
		.key = random_key(), .ipc_space = own_ipc_space(), .id = (uint64_t)id
	};
	memcpy(f->magic, SHARE_MAGIC, sizeof f->magic);
	*ret = f;
	return 0;
}

/* The new segment takes over what a person has set in the one before. */
static long begin_anew(long fd, const struct share_name *before, struct share_file **ret)
{
	struct share_file *f = NULL;
	long failed = make_segment(&f);
	if (failed)
		return failed;
	if (before) {
		store_relaxed(&f->arbiter.open, before->open);
		memcpy(f->arbiter.policy, before->policy, sizeof f->arbiter.policy);
		f->tuning = before->tuning;
	}
	const struct share_name name = name_of(f);
	failed = write_name(fd, &name);
	if (failed) {
		share_close(f);
		return failed;
	}
	*ret = f;
	return 0;
}

/* 0; -EAGAIN: the arbiter is to say first which segment it has; or -errno. */
static long reach(long directory, struct share_file **ret)
{
	struct share_name name = { 0 };
	const long fd = open_file(directory);
	if (sys_failed(fd))
		return fd;
	long failed = read_name(fd, &name);
	*ret = failed ? NULL : attach(&name.identity);
	const bool is_elsewhere = !failed && !*ret && name.identity.ipc_space != own_ipc_space();
	if (!*ret && (!failed || failed == -ENODATA || failed == -EBADMSG) &&
		has_arbiter(directory))
		failed = is_elsewhere ? -EXDEV : -EAGAIN;
	else if (!*ret && (!failed || failed == -ENODATA))
		failed = begin_anew(fd, failed ? NULL : &name, ret);
	unlock(fd);
	return failed;
}

static const char *why_not(long failed)
{
	switch (failed) {
	case -EINVAL:
		return "it is of another version of Weir. End the programs that use it, or share in another directory";
	case -EBADMSG:
		return "it is damaged. Remove it: programs that share already continue";
	case -EPERM:
		return "the directory is another user's, or others may write to it. Share in one of your own";
	case -ESTALE:
		return "it is another user's, or others may write to it. Remove it";
	case -EXDEV:
		return "the programs that share there are in another IPC namespace. Start the containers with one, such as docker run --ipc=host";
	case -ENOENT:
		return "there is no such directory";
	case -EACCES:
		return "permission denied";
	case -ELOOP:
	case -EEXIST:
	case -ENOTDIR:
		return "something else has its name. Remove that";
	case -EFBIG:
		return "the limit for the size of files is too small";
	case -ENOSPC:
	case -EDQUOT:
		return "no room is left";
	case -EAGAIN:
		return "it is damaged, and the arbiter, which would repair it, is stopped. End that, or share in another directory";
	case -EBUSY:
		return "another process has locked it for more than 2 s. End that, or share in another directory";
	default:
		return "it can't be made or attached";
	}
}

struct share_file *share_open(const char *directory, const char **ret_why)
{
	struct share_file *f = NULL;
	const long made = sys(mkdirat, AT_FDCWD, directory, 0700);
	const long at = sys_failed(made) && made != -EEXIST ? made : open_directory(directory);
	long failed = sys_failed(at) ? at : -EAGAIN;
	for (int turn = 0; failed == -EAGAIN && turn < LOCK_TURNS; turn++) {
		failed = reach(at, &f);
		if (failed == -EAGAIN)
			nap();
	}
	if (!sys_failed(at))
		sys(close, at);
	if (!f)
		*ret_why = why_not(failed);
	return f;
}

void share_close(struct share_file *f)
{
	sys(shmdt, f);
}

void share_keep(const struct share_file *f, const char *directory)
{
	struct share_name now = { 0 };
	const struct share_name name = name_of(f);
	const long at = open_directory(directory);
	const long fd = sys_failed(at) ? at : open_file(at);
	if (!sys_failed(at))
		sys(close, at);
	if (sys_failed(fd))
		return;
	const long failed = read_name(fd, &now);
	struct share_file *other =
		failed || now.identity.key == f->identity.key ? NULL : attach(&now.identity);
	if (other)
		share_close(other);
	else if (failed != -EINVAL && (failed || memcmp(&now, &name, sizeof now) != 0))
		write_name(fd, &name);
	unlock(fd);
}
