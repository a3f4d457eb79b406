/* Starts and ends NVIDIA's Multi-Process Service. */
#include "cmd/cli/mps.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cli/command.h"
#include "cmd/cli/device_choice.h"
#include "base/xmalloc.h"

#define CONTROL "nvidia-cuda-mps-control"

extern char **environ;

/* Without what says which GPUs the program may see: those that come later may see others.  NULL */
static char **environment_of_daemon(void)
{
	static const char seen[] = "CUDA_VISIBLE_DEVICES=";
	size_t n = 0, kept = 0;
	while (environ[n])
		n++;
	char **all = xcalloc(n + 1, sizeof *all);
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], seen, sizeof seen - 1) != 0)
			all[kept++] = environ[i];
	return all;
}

/* Its answer is of no interest, and its words are not the program's.  True when it has ended well.
 */
static bool control(const char *argument, const char *command)
{
	int in[2], status = -1;
	pid_t pid;
	posix_spawn_file_actions_t files;
	char *const argv[] = { (char *)CONTROL, (char *)argument, NULL };
	char **const environment = environment_of_daemon();
	if (!environment || pipe2(in, O_CLOEXEC)) {
		free(environment);
		return false;
	}
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], 0);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	const int failed = posix_spawnp(&pid, CONTROL, &files, NULL, argv, environment);
	free(environment);
	posix_spawn_file_actions_destroy(&files);
	const bool told = write(in[1], command, strlen(command)) == (ssize_t)strlen(command);
	close(in[0]);
	close(in[1]);
	if (failed)
		return false;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return told && WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool is_running(void)
{
	return control(NULL, "get_default_active_thread_percentage\n");
}

static bool be_running(const struct mps *m)
{
	if (mkdir(m->pipes, 0700) && errno != EEXIST)
		return false;
	if (mkdir(m->log, 0700) && errno != EEXIST)
		return false;
	return is_running() || control("-d", "");
}

/* Starting and ending it is one process's at a time: the lock, or -1. */
static int lock_file(const char *path, int how)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && flock(fd, how)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Down to what the device can be divided by. */
static bool percent_of_sms(struct mps *m)
{
	const uint32_t all = device_sms(), step = 2;
	if (!all || m->sms < step)
		return false;
	m->percent = 100.0 * (m->sms / step * step) / all;
	return true;
}

static void set_limits(struct mps *m)
{
	char percent[32];
	setenv("CUDA_MPS_CLIENT_PRIORITY", m->is_latency ? "0" : "1", 0);
	if (m->sms && !percent_of_sms(m))
		remark("the number of the GPU's SMs is unknown, so --sms has no effect. Give a percentage");
	if (m->percent > 0 && m->percent < 100) {
		snprintf(percent, sizeof percent, "%.3f", m->percent);
		setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, 1);
	}
}

static bool without(struct mps *m, const char *why)
{
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	unsetenv("CUDA_MPS_LOG_DIRECTORY");
	remark("%s: programs take turns on the GPU, each change costs about 0.1 ms, and nothing runs beside a request%s",
		why, m->percent > 0 || m->sms ? ". --sms has no effect" : "");
	return false;
}

bool mps_start(struct mps *m, const char *directory, bool isolated)
{
	char users[600];
	if (isolated)
		return false;
	if (getenv("CUDA_MPS_PIPE_DIRECTORY")) { /* the person has one running */
		set_limits(m);
		return true;
	}
	snprintf(m->starting, sizeof m->starting, "%s/mps.starting", directory);
	snprintf(users, sizeof users, "%s/mps.users", directory);
	snprintf(m->pipes, sizeof m->pipes, "%s/mps", directory);
	snprintf(m->log, sizeof m->log, "%s/mps-log", directory);
	const int starting = lock_file(m->starting, LOCK_EX);
	if (starting < 0)
		return without(m, "MPS can't be started");
	const bool runs = !setenv("CUDA_MPS_PIPE_DIRECTORY", m->pipes, 1) &&
			  !setenv("CUDA_MPS_LOG_DIRECTORY", m->log, 1) && be_running(m);
	if (runs)
		m->users = lock_file(users, LOCK_SH);
	close(starting);
	if (!runs)
		return without(m, "MPS (" CONTROL ") is not there");
	set_limits(m);
	return true;
}

void mps_stop(struct mps *m)
{
	if (m->users <= 0)
		return;
	const int starting = lock_file(m->starting, LOCK_EX);
	if (!flock(m->users, LOCK_EX | LOCK_NB)) /* no other uses it */
		control(NULL, "quit\n");
	close(m->users);
	if (starting >= 0)
		close(starting);
	m->users = 0;
}
