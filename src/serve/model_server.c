/* Starts the parts of a server in their order, and ends them in the other. */
#include "serve/model_server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cond.h"
#include "base/number.h"
#include "serve/internal.h"

#define BACKLOG 1024

static bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

/* A socket file that nobody listens at any more is left from a server that was killed. */
static void remove_stale(const struct sockaddr_un *a)
{
	struct stat st;
	if (lstat(a->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return;
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) && errno == ECONNREFUSED)
		unlink(a->sun_path);
	if (fd >= 0)
		close(fd);
}

static int listen_unix(struct listener *l, const char *at, struct error *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const char *path = at + strlen("unix:");
	if (!*path || strlen(path) >= sizeof a.sun_path)
		return error_set(err, -EINVAL, "--listen=%s: a socket's path has 1 to %zu bytes",
			at, sizeof a.sun_path - 1);
	memcpy(a.sun_path, path, strlen(path));
	remove_stale(&a);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const mode_t mask = umask(0177);
	const int e =
		l->fd < 0 || bind(l->fd, (struct sockaddr *)&a, sizeof a) || listen(l->fd, BACKLOG)
			? -errno
			: 0;
	umask(mask);
	if (e)
		return error_set(err, e, "--listen=%s: %s", at, strerror(-e));
	l->path = xstrdup(path);
	return 0;
}

static int bind_address(struct server *s, struct listener *l, const struct addrinfo *a)
{
	const int one = 1;
	if (!is_loopback(a->ai_addr) && !s->tokens && !s->o.open)
		return -EPERM;
	l->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return -errno;
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(l->fd, a->ai_addr, a->ai_addrlen) || listen(l->fd, BACKLOG))
		return -errno;
	struct sockaddr_storage got;
	socklen_t n = sizeof got;
	getsockname(l->fd, (struct sockaddr *)&got, &n);
	l->port = ntohs(got.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&got)->sin6_port
						  : ((struct sockaddr_in *)&got)->sin_port);
	return 0;
}

static int listen_at(struct server *s, struct listener *l, const char *at, struct error *err)
{
	l->fd = -1;
	if (strncmp(at, "unix:", 5) == 0)
		return listen_unix(l, at, err);
	const char *colon = strrchr(at, ':');
	uint64_t port = 0;
	if (!colon || colon == at || !slice_u64(slice_of(colon + 1), &port) || port > UINT16_MAX)
		return error_set(err, -EINVAL,
			"--listen=%s: give ADDRESS:PORT, as in 127.0.0.1:8000, or unix:PATH", at);
	const bool brackets = *at == '[' && colon[-1] == ']';
	char *host = xstrndup(at + brackets, (size_t)(colon - at) - 2 * brackets);
	struct addrinfo *found = NULL;
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | AI_PASSIVE };
	const int code = getaddrinfo(host, colon + 1, &hints, &found);
	free(host);
	if (code)
		return error_set(err, -EINVAL, "--listen=%s: %s", at, gai_strerror(code));
	const int e = bind_address(s, l, found);
	freeaddrinfo(found);
	if (e == -EPERM)
		return error_set(err, -EINVAL,
			"--listen=%s: other machines can reach that address. Give --token FILE with a word "
			"that clients have to say, or --open if anybody may ask",
			at);
	return e ? error_set(err, e, "--listen=%s: %s", at, strerror(-e)) : 0;
}

static int listen_all(struct server *s, struct error *err)
{
	int e = 0;
	for (unsigned i = 0; !e && i < s->o.listens; i++) {
		e = listen_at(s, &s->listeners[i], s->o.listen[i], err);
		s->nlisteners += s->listeners[i].fd >= 0;
	}
	return e;
}

/* The sockets of servers that were killed. */
static void remove_dead(const char *directory)
{
	DIR *d = opendir(directory);
	for (struct dirent *e; d && (e = readdir(d));) {
		struct sockaddr_un a = { .sun_family = AF_UNIX };
		if (strncmp(e->d_name, "serve-", 6) != 0)
			continue;
		const int n =
			snprintf(a.sun_path, sizeof a.sun_path, "%s/%s", directory, e->d_name);
		if (n > 0 && (size_t)n < sizeof a.sun_path)
			remove_stale(&a);
	}
	if (d)
		closedir(d);
}

/* Opens the socket at which weir top finds this server.  It serves without it, too. */
static void listen_watch(struct server *s)
{
	struct error err;
	char at[512];
	if (!s->o.watch || !*s->o.watch)
		return;
	mkdir(s->o.watch, 0700);
	remove_dead(s->o.watch);
	struct listener *l = &s->listeners[s->nlisteners];
	const int n = snprintf(at, sizeof at, "unix:%s/serve-%d.sock", s->o.watch, (int)getpid());
	if (n < (int)sizeof at && listen_unix(l, at, &err) == 0) {
		l->trusted = true;
		s->nlisteners++;
		return;
	}
	if (l->fd > 0)
		close(l->fd);
	fprintf(stderr, "weir serve: weir top can't see this server: no socket in %s can be made\n",
		s->o.watch);
}

static void init(struct server *s, const struct serve_options *o)
{
	cond_init_monotonic(&s->keeper_work);
	pthread_mutex_init(&s->keeper_lock, NULL);
	pthread_rwlock_init(&s->models.lock, NULL);
	s->o = *o;
	s->asked_end = &s->asked;
	s->began_ns = monotonic_ns();
	s->regions = regions_new();
	settings_init(s);
	recorded_begin(s);
}

static unsigned loops_for(unsigned asked)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	if (asked)
		return asked;
	return cores >= 8 ? 2 : 1;
}

static int start_loops(struct server *s, struct error *err)
{
	const unsigned n = loops_for(s->o.loops);
	int e = 0;
	s->loops = xcalloc(n, sizeof *s->loops);
	for (unsigned i = 0; !e && i < n; i++) {
		e = loop_start(&s->loops[i], s, err);
		s->nloops += !e;
	}
	return e;
}

int serve_start(const struct serve_options *o, struct server **ret, struct error *err)
{
	struct server *s = xcalloc(1, sizeof *s);
	init(s, o);
	int e = o->token ? tokens_open(o->token, &s->tokens, err) : 0;
	if (!e && o->log)
		e = log_open(o->log, &s->log, err);
	e = e ? e : listen_all(s, err);
	if (!e)
		listen_watch(s);
	e = e ? e : device_start(&s->device, s, err);
	e = e ? e : start_loops(s, err);
	e = e ? e : models_open(s, err);
	e = e ? e : keeper_start(s, err);
	if (e) {
		serve_stop(s, true);
		serve_free(s);
		return e;
	}
	store_release(&s->ready, true);
	*ret = s;
	return 0;
}

unsigned serve_port(const struct server *s, unsigned listen)
{
	return listen < s->nlisteners ? s->listeners[listen].port : 0;
}

void serve_drain(struct server *s)
{
	store_release(&s->draining, true);
}

void serve_stop(struct server *s, bool now)
{
	store_release(&s->draining, true);
	store_release(&s->ends, now);
	store_release(&s->stopping, true);
	for (unsigned i = 0; i < s->nloops; i++)
		loop_wake(&s->loops[i]);
	for (unsigned i = 0; i < s->nloops; i++)
		loop_join(&s->loops[i]);
	device_stop(&s->device);
	keeper_stop(s);
}

void serve_free(struct server *s)
{
	for (unsigned i = 0; i < s->nloops; i++)
		loop_fini(&s->loops[i]);
	models_close(s);
	keeper_bury_all(s);
	if (s->models.store)
		store_close(s->models.store);
	pthread_rwlock_destroy(&s->models.lock);
	device_close(&s->device);
	regions_free(s->regions);
	for (unsigned i = 0; i < s->nlisteners; i++) {
		close(s->listeners[i].fd);
		if (s->listeners[i].path)
			unlink(s->listeners[i].path);
		free(s->listeners[i].path);
	}
	log_close(s->log);
	json_decref(s->trace);
	json_decref(s->logging);
	free(s->loops);
	tokens_free(s->tokens);
	free(s);
}

static void put_latency(const struct version *v, FILE *out)
{
	const uint32_t most = v->batched ? v->config->max_batch_size : 1;
	const char *lead = ": rows ";
	pthread_mutex_lock(&v->device->lock);
	for (uint32_t rows = 1; rows <= most;
		rows = rows < most && rows * 2 > most ? most : rows * 2) {
		const uint64_t ns = batch_predict(v->queue, rows);
		struct number n;
		if (ns)
			fprintf(out, "%s%u in %s", lead, rows, number_ns(&n, ns));
		lead = ns ? ", " : lead;
	}
	pthread_mutex_unlock(&v->device->lock);
}

void serve_put_ready(struct server *s, FILE *out)
{
	pthread_rwlock_rdlock(&s->models.lock);
	for (size_t i = 0; i < s->models.list.n; i++) {
		const struct model *m = s->models.list.v[i];
		for (size_t k = 0; k < m->versions.n; k++) {
			const struct version *v = m->versions.v[k];
			fprintf(out, "%s version %" PRIu64 ", %s", m->name, v->number,
				v->loaded->engine->name);
			put_latency(v, out);
			if (version_has_free_size(v) && !v->config->warmups)
				fputs(", for inputs of size 1: state their dims in config.pbtxt",
					out);
			putc('\n', out);
		}
	}
	pthread_rwlock_unlock(&s->models.lock);
}
