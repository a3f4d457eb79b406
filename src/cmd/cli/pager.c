/* Starts the pager. */
#include "cmd/cli/pager.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pager; /* 0: there is none */

size_t terminal_width(void)
{
	struct winsize size;
	if (isatty(STDOUT_FILENO) != 1)
		return 0;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return 80;
}

static const char *pager_name(void)
{
	const char *own = getenv("WEIR_PAGER"), *any = getenv("PAGER");
	return own ? own : any ? any : "less";
}

/* In the child: its standard input is what the parent writes. */
static void become_pager(const char *name, const int ends[2])
{
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	close(ends[1]);
	setenv("LESS", "FRX", 0);
	signal(SIGINT, SIG_DFL);
	execlp("sh", "sh", "-c", name, (char *)NULL);
	_exit(127);
}

/* A shell finds out only in the child whether there is such a program: without it all would be
 * lost. */
static bool is_there(const char *name)
{
	const size_t bytes = strcspn(name, " \t");
	const char *path = getenv("PATH");
	if (memchr(name, '/', bytes))
		return true;
	for (const char *at = path ? path : "/usr/bin:/bin"; *at; at += strspn(at, ":")) {
		char file[4096];
		const size_t folder = strcspn(at, ":");
		const int n =
			snprintf(file, sizeof file, "%.*s/%.*s", (int)folder, at, (int)bytes, name);
		if (n > 0 && (size_t)n < sizeof file && !access(file, X_OK))
			return true;
		at += folder;
	}
	return false;
}

void pager_begin(void)
{
	const char *name = pager_name();
	int ends[2];
	if (isatty(STDOUT_FILENO) != 1 || !*name || !strcmp(name, "cat") || !is_there(name))
		return;
	fflush(stdout);
	if (pipe(ends))
		return;
	signal(SIGINT, SIG_IGN); /* is the pager's, which outlives this program's output */
	pager = fork();
	if (!pager)
		become_pager(name, ends);
	close(ends[0]);
	if (pager > 0)
		dup2(ends[1], STDOUT_FILENO);
	else
		pager = 0, signal(SIGINT, SIG_DFL);
	close(ends[1]);
}

void pager_end(void)
{
	if (!pager)
		return;
	fflush(stdout);
	close(STDOUT_FILENO);
	while (waitpid(pager, NULL, 0) < 0)
		;
	pager = 0;
}
