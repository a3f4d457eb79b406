/* See server.h. */
#include "monitor/server.h"

#include <errno.h>

#ifdef WEIR_MICROHTTPD

#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "monitor/change.h"
#include "monitor/prometheus.h"

#include "base/banned.h"

#define TEXT "text/plain; charset=utf-8"
#define JSON "application/json"

struct server {
	struct server_config c;
	struct MHD_Daemon *metrics, *control;
	pthread_mutex_t lock; /* of the watch: either daemon has a thread */
	uint64_t looked_ns;
	char socket[sizeof((struct sockaddr_un *)0)->sun_path]; /* "": none */
};

struct answer {
	unsigned status;
	const char *type;
	char *body; /* to be freed */
	size_t bytes;
};

/* ---- answers ---- */

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool look(struct server *s)
{
	if (s->looked_ns && now_ns() - s->looked_ns < SERVER_FRESH_NS)
		return true;
	const bool done = !s->c.look(s->c.data);
	s->looked_ns = done ? now_ns() : 0;
	return done;
}

/* The body is what put() writes. */
static void write_answer(struct server *s, struct answer *a, unsigned status, const char *type,
	void (*put)(FILE *out, const struct server *s, const char *text), const char *text)
{
	FILE *out = open_memstream(&a->body, &a->bytes);
	a->status = status;
	a->type = type;
	if (!out) {
		a->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
		return;
	}
	put(out, s, text);
	fclose(out);
}

static void put_text(FILE *out, const struct server *s, const char *text)
{
	fprintf(out, "%s\n", text);
}

static void put_metrics(FILE *out, const struct server *s, const char *text)
{
	prometheus_put(out, s->c.watch, s->c.version);
}

static void put_programs(FILE *out, const struct server *s, const char *text)
{
	struct json j;
	json_init(&j, out);
	json_begin_object(&j, NULL);
	watch_put_json(&j, s->c.watch);
	json_end_object(&j);
	putc('\n', out);
}

static void put_policy(FILE *out, const struct server *s, const char *text)
{
	struct json j;
	json_init(&j, out);
	json_begin_object(&j, NULL);
	json_str_or_null(&j, "policy", *s->c.watch->policy ? s->c.watch->policy : NULL);
	json_bool(&j, "open", s->c.watch->open);
	json_end_object(&j);
	putc('\n', out);
}

static void put_error(FILE *out, const struct server *s, const char *text)
{
	struct json j;
	json_init(&j, out);
	json_begin_object(&j, NULL);
	json_str(&j, "error", text);
	json_end_object(&j);
	putc('\n', out);
}

static void refuse(struct server *s, struct answer *a, unsigned status, const char *text)
{
	write_answer(s, a, status, JSON, put_error, text);
}

static void answer_change(struct server *s, struct answer *a, int e, const char *what)
{
	s->looked_ns = 0;
	if (e == -EINVAL)
		refuse(s, a, MHD_HTTP_BAD_REQUEST, what);
	else if (e)
		refuse(s, a, MHD_HTTP_NOT_FOUND, "no such program shares a GPU");
	else
		a->status = MHD_HTTP_NO_CONTENT;
}

/* "1234/class": the process, or 0. */
static uint32_t pid_of(const char *path)
{
	char *end;
	const unsigned long pid = *path >= '1' && *path <= '9' ? strtoul(path, &end, 10) : 0;
	return pid && pid <= INT32_MAX && !strcmp(end, "/class") ? (uint32_t)pid : 0;
}

static void answer_put(
	struct server *s, struct MHD_Connection *c, const char *path, struct answer *a)
{
	static const char programs[] = "/v1/programs/";
	const size_t n = sizeof programs - 1;
	const char *class = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "class");
	const char *policy = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "policy");
	const uint32_t pid = strncmp(path, programs, n) ? 0 : pid_of(path + n);
	if (pid)
		answer_change(s, a, change_class(s->c.watch->file, pid, class ? class : ""),
			"class is latency or best-effort");
	else if (!strcmp(path, "/v1/policy"))
		answer_change(s, a, change_policy(s->c.watch->file, policy ? policy : ""),
			"no such policy; weir sched policy lists them");
	else
		refuse(s, a, MHD_HTTP_NOT_FOUND, "nothing here can be changed");
}

static void answer_get(struct server *s, const char *path, bool control, struct answer *a)
{
	if (!strcmp(path, "/healthz"))
		write_answer(s, a, MHD_HTTP_OK, TEXT, put_text, "ok");
	else if (!strcmp(path, "/metrics"))
		write_answer(s, a, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
			put_metrics, NULL);
	else if (control && !strcmp(path, "/v1/programs"))
		write_answer(s, a, MHD_HTTP_OK, JSON, put_programs, NULL);
	else if (control && !strcmp(path, "/v1/policy"))
		write_answer(s, a, MHD_HTTP_OK, JSON, put_policy, NULL);
	else
		write_answer(s, a, MHD_HTTP_NOT_FOUND, TEXT, put_text,
			"nothing is here; metrics are at /metrics");
}

static void make_answer(struct server *s, struct MHD_Connection *c, const char *path,
	const char *method, bool control, struct answer *a)
{
	const bool reads =
		!strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD);
	const bool changes = control && !strcmp(method, MHD_HTTP_METHOD_PUT);
	if (!reads && !changes)
		write_answer(
			s, a, MHD_HTTP_METHOD_NOT_ALLOWED, TEXT, put_text, "this can only be read");
	else if (strcmp(path, "/healthz") != 0 && !look(s))
		write_answer(s, a, MHD_HTTP_INTERNAL_SERVER_ERROR, TEXT, put_text,
			"programs can't be looked at");
	else if (changes)
		answer_put(s, c, path, a);
	else
		answer_get(s, path, control, a);
}

/* What a client sends beside its request is read and thrown away. */
static enum MHD_Result handle(struct server *s, struct MHD_Connection *c, const char *path,
	const char *method, size_t *upload, void **state, bool control)
{
	static int begun;
	struct answer a = { .type = TEXT };
	if (!*state) {
		*state = &begun;
		return MHD_YES;
	}
	if (*upload) {
		*upload = 0;
		return MHD_YES;
	}
	pthread_mutex_lock(&s->lock);
	make_answer(s, c, path, method, control, &a);
	pthread_mutex_unlock(&s->lock);
	struct MHD_Response *r =
		MHD_create_response_from_buffer(a.bytes, a.body, MHD_RESPMEM_MUST_FREE);
	if (!r) {
		free(a.body);
		return MHD_NO;
	}
	if (a.bytes)
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, a.type);
	const enum MHD_Result done = MHD_queue_response(c, a.status, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result on_address(void *data, struct MHD_Connection *c, const char *path,
	const char *method, const char *version, const char *upload, size_t *bytes, void **state)
{
	return handle(data, c, path, method, bytes, state, false);
}

static enum MHD_Result on_socket(void *data, struct MHD_Connection *c, const char *path,
	const char *method, const char *version, const char *upload, size_t *bytes, void **state)
{
	return handle(data, c, path, method, bytes, state, true);
}

/* ---- where it listens ---- */

/* "127.0.0.1:9464", "[::1]:9464". */
static int find_address(const char *text, struct addrinfo **ret, struct error *err)
{
	char host[128];
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;
	const bool brackets = n > 2 && *text == '[' && text[n - 1] == ']';
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM };
	text += brackets;
	n -= brackets ? 2 : 0;
	if (!n || n >= sizeof host || !colon[1])
		return error_set(err, -EINVAL, "an address and a port are needed, 127.0.0.1:9464");
	memcpy(host, text, n);
	host[n] = 0;
	const int why = getaddrinfo(host, colon + 1, &hints, ret);
	return why ? error_set(err, -EINVAL, "%s:%s is no address with a port: %s", host, colon + 1,
			     gai_strerror(why))
		   : 0;
}

static int listen_at(const char *text, int *ret_fd, struct error *err)
{
	const int on = 1;
	struct addrinfo *a = NULL;
	int e = find_address(text, &a, err);
	if (e)
		return e;
	const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, SOMAXCONN)) {
		e = error_set(err, -errno, "%s can't be listened at: %s", text, strerror(errno));
		if (fd >= 0)
			close(fd);
	} else {
		*ret_fd = fd;
	}
	freeaddrinfo(a);
	return e;
}

/* A socket that nobody answers at any more is replaced; nothing else is. */
static bool is_left_behind(const struct sockaddr_un *at)
{
	struct stat st;
	if (lstat(at->sun_path, &st) || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return false;
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const bool dead = fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof *at) &&
			  errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return dead;
}

static int listen_on_socket(struct server *s, const char *path, int *ret_fd, struct error *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	if (snprintf(at.sun_path, sizeof at.sun_path, "%s", path) >= (int)sizeof at.sun_path)
		return error_set(err, -ENAMETOOLONG, "%s is too long for a socket", path);
	if (is_left_behind(&at))
		unlink(path);
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const mode_t mask = umask(0177); /* 0600 from its first moment on */
	const int failed = fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) ? errno : 0;
	umask(mask);
	if (failed || listen(fd, SOMAXCONN)) {
		const int e = error_set(err, failed ? -failed : -errno,
			"%s can't be listened at: %s", path, strerror(failed ? failed : errno));
		if (fd >= 0)
			close(fd);
		return e;
	}
	memcpy(s->socket, at.sun_path, sizeof s->socket);
	*ret_fd = fd;
	return 0;
}

/* Each connection is a file. */
static void raise_files(void)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= SERVER_CONNECTIONS + 100)
		return;
	l.rlim_cur = l.rlim_max < SERVER_CONNECTIONS + 100 ? l.rlim_max : SERVER_CONNECTIONS + 100;
	setrlimit(RLIMIT_NOFILE, &l);
}

static struct MHD_Daemon *serve(struct server *s, int fd, MHD_AccessHandlerCallback handler)
{
	return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handler, s,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, SERVER_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, SERVER_PATIENCE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384, MHD_OPTION_END);
}

static unsigned port_of(int fd)
{
	struct sockaddr_storage at;
	socklen_t bytes = sizeof at;
	char port[16] = "0";
	if (!getsockname(fd, (struct sockaddr *)&at, &bytes))
		getnameinfo(
			(struct sockaddr *)&at, bytes, NULL, 0, port, sizeof port, NI_NUMERICSERV);
	return (unsigned)strtoul(port, NULL, 10);
}

static int begin(struct server *s, unsigned *ret_port, struct error *err)
{
	int fd = -1, control = -1;
	int e = listen_at(s->c.listen, &fd, err);
	if (e)
		return e;
	*ret_port = port_of(fd);
	s->metrics = serve(s, fd, on_address);
	if (!s->metrics) {
		close(fd);
		return error_set(err, -EIO, "no server can be started");
	}
	e = s->c.control ? listen_on_socket(s, s->c.control, &control, err) : 0;
	if (e || !s->c.control)
		return e;
	s->control = serve(s, control, on_socket);
	if (s->control)
		return 0;
	close(control);
	return error_set(err, -EIO, "no server can be started");
}

int server_start(
	const struct server_config *c, struct server **ret_s, unsigned *ret_port, struct error *err)
{
	struct server *s = calloc(1, sizeof *s);
	if (!s)
		return error_set(err, -ENOMEM, "no memory");
	s->c = *c;
	pthread_mutex_init(&s->lock, NULL);
	raise_files();
	const int e = begin(s, ret_port, err);
	if (e)
		server_stop(s);
	else
		*ret_s = s;
	return e;
}

void server_stop(struct server *s)
{
	if (s->metrics)
		MHD_stop_daemon(s->metrics);
	if (s->control)
		MHD_stop_daemon(s->control);
	if (*s->socket)
		unlink(s->socket);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

#else

int server_start(
	const struct server_config *c, struct server **ret_s, unsigned *ret_port, struct error *err)
{
	return error_set(err, -ENOSYS, "this Weir was built without libmicrohttpd");
}

void server_stop(struct server *s)
{
}

#endif
