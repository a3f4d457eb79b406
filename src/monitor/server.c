/* Serves HTTP requests. */
#include "monitor/server.h"

#include <errno.h>

#ifdef WEIR_MICROHTTPD

#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/shared_library.h"
#include "base/slice.h"
#include "monitor/api.h"
#include "monitor/clients.h"
#include "monitor/libmicrohttpd.h"

#define TOKEN_LEAST 16u
#define TOKEN_MOST  128u
#define LIBRARY     "libmicrohttpd.so.12"

static struct libmicrohttpd mhd;

struct server {
	struct server_config c;
	struct MHD_Daemon *metrics, *control;
	struct clients *clients; /* of both */
	pthread_mutex_t lock;    /* of the watch: either daemon has a thread */
	uint64_t looked_ns;
	char token[TOKEN_MOST + 1];                             /* "": none */
	char socket[sizeof((struct sockaddr_un *)0)->sun_path]; /* "": none */
};

/* With the lock held. */
static int look(void *data)
{
	struct server *s = data;
	if (s->looked_ns && monotonic_ns() - s->looked_ns < SERVER_FRESH_NS)
		return 0;
	const int e = s->c.look(s->c.data);
	s->looked_ns = e ? 0 : monotonic_ns();
	return e;
}

/* One on its way: what has come of its body. */
struct body {
	size_t bytes;
	bool too_long;
	char text[API_BODY];
};
static struct body no_body; /* of what has none: those are the most */

static const char *argument(void *connection, const char *name)
{
	return mhd.MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

/* Takes as long for a token that begins as it should as for another. */
static bool has_token(const struct server *s, struct MHD_Connection *c)
{
	static const char bearer[] = "Bearer ";
	const size_t n = sizeof bearer - 1, length = strlen(s->token);
	const char *is = mhd.MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
	unsigned differs = 0;
	if (!is || strncmp(is, bearer, n) != 0 || strlen(is + n) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		differs |= (unsigned char)is[n + i] ^ (unsigned char)s->token[i];
	return !differs;
}

static enum api_may rights_of(const struct server *s, struct MHD_Connection *c, bool control)
{
	if (control)
		return API_CONTROLS;
	if (!*s->token)
		return API_READS;
	return has_token(s, c) ? API_CONTROLS : API_UNKNOWN;
}

static void take_body(struct body *b, const char *upload, size_t bytes)
{
	if (b == &no_body)
		return;
	b->too_long |= bytes > sizeof b->text - b->bytes;
	if (b->too_long)
		return;
	memcpy(b->text + b->bytes, upload, bytes);
	b->bytes += bytes;
}

static struct body *new_body(const char *method)
{
	struct body *b = strcmp(method, MHD_HTTP_METHOD_PUT) ? &no_body : xmalloc(sizeof *b);
	if (b != &no_body)
		b->bytes = b->too_long = 0;
	return b;
}

static void request_ends(
	void *data, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
	const struct server *s = data;
	const union MHD_ConnectionInfo *info =
		mhd.MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	if (info)
		client_answered(s->clients, info->socket_context);
	if (*state != &no_body)
		free(*state);
	*state = NULL;
}

static void on_connection(void *data, struct MHD_Connection *c, void **context,
	enum MHD_ConnectionNotificationCode what)
{
	const struct server *s = data;
	const union MHD_ConnectionInfo *info =
		mhd.MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (what == MHD_CONNECTION_NOTIFY_CLOSED)
		client_end(s->clients, *context);
	else if (info)
		*context = client_begin(s->clients, info->connect_fd);
}

static enum MHD_Result send_answer(struct MHD_Connection *c, struct api_answer *a)
{
	struct MHD_Response *r =
		mhd.MHD_create_response_from_buffer(a->bytes, a->body, MHD_RESPMEM_MUST_FREE);
	if (!r) {
		free(a->body);
		return MHD_NO;
	}
	if (a->bytes)
		mhd.MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, a->type);
	if (a->allow)
		mhd.MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, a->allow);
	if (a->status == MHD_HTTP_UNAUTHORIZED)
		mhd.MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	const enum MHD_Result done = mhd.MHD_queue_response(c, a->status, r);
	mhd.MHD_destroy_response(r);
	return done;
}

static enum MHD_Result handle(struct server *s, struct MHD_Connection *c, const char *path,
	const char *method, const char *upload, size_t *bytes, void **state, bool control)
{
	struct api_answer a = { 0 };
	if (!*state) {
		*state = new_body(method);
		return MHD_YES;
	}
	struct body *b = *state;
	if (*bytes) {
		take_body(b, upload, *bytes);
		*bytes = 0;
		return MHD_YES;
	}
	const struct api api = { s->c.watch, s->c.version, look, s };
	const struct api_request r = { .method = method,
		.path = path,
		.body = b->text,
		.body_bytes = b->bytes,
		.argument = argument,
		.data = c,
		.may = rights_of(s, c, control),
		.too_long = b->too_long };
	pthread_mutex_lock(&s->lock);
	api_ask(&api, &r, &a);
	if (!strcmp(method, MHD_HTTP_METHOD_PUT))
		s->looked_ns = 0; /* what changed is to be seen */
	pthread_mutex_unlock(&s->lock);
	return send_answer(c, &a);
}

static enum MHD_Result on_address(void *data, struct MHD_Connection *c, const char *path,
	const char *method, const char *version, const char *upload, size_t *bytes, void **state)
{
	return handle(data, c, path, method, upload, bytes, state, false);
}

static enum MHD_Result on_socket(void *data, struct MHD_Connection *c, const char *path,
	const char *method, const char *version, const char *upload, size_t *bytes, void **state)
{
	return handle(data, c, path, method, upload, bytes, state, true);
}

/* Reads the file's text, but for blanks around it. */
static int take_token(struct server *s, const char *path, char text[], struct error *err)
{
	size_t n = strcspn(text, "\r\n \t");
	if (text[n + strspn(text + n, "\r\n \t")] || n < TOKEN_LEAST || n > TOKEN_MOST)
		return error_set(err, -EINVAL,
			"%s: a token is one word of %u to %u characters. `openssl rand -hex 24` makes one",
			path, TOKEN_LEAST, TOKEN_MOST);
	memcpy(s->token, text, n);
	return 0;
}

static int read_token(struct server *s, const char *path, struct error *err)
{
	char text[TOKEN_MOST + 64] = { 0 };
	struct stat st;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return error_set(err, -EINVAL, "%s can't be read: %s", path, strerror(errno));
	const bool own = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
			 !(st.st_mode & 077);
	const ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (!own)
		return error_set(err, -EINVAL,
			"%s: others may read it, or it is no file of yours. Make it safe with chmod 600",
			path);
	return n < 0 ? error_set(err, -EINVAL, "%s can't be read", path)
		     : take_token(s, path, text, err);
}

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
	uint64_t port = 0;
	if (!n || n >= sizeof host || !slice_u64(slice_of(colon + 1), &port) || port > UINT16_MAX)
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
	l.rlim_cur = MIN(l.rlim_max, SERVER_CONNECTIONS + 100);
	setrlimit(RLIMIT_NOFILE, &l);
}

int server_load(struct error *err)
{
	static const struct library_symbol symbols[] = {
#define SYMBOL(name) { #name, offsetof(struct libmicrohttpd, name) },
		LIBMICROHTTPD_FUNCTIONS(SYMBOL)
#undef SYMBOL
	};
	if (!library_load(LIBRARY, symbols, sizeof symbols / sizeof *symbols, &mhd))
		return 0;
	return error_set(err, -ENOSYS,
		LIBRARY
		" is missing. Install it (Debian: libmicrohttpd12, Ubuntu: libmicrohttpd12t64)");
}

static struct MHD_Daemon *serve(struct server *s, int fd, MHD_AccessHandlerCallback handler)
{
	return mhd.MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handler, s,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, SERVER_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, SERVER_PATIENCE_S,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, SERVER_CONNECTIONS_EACH,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384, MHD_OPTION_NOTIFY_COMPLETED,
		request_ends, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
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
	int e = server_load(err);
	e = e || !s->c.token ? e : read_token(s, s->c.token, err);
	e = e ? e : listen_at(s->c.listen, &fd, err);
	if (e)
		return e;
	*ret_port = port_of(fd);
	s->clients = clients_new(2 * SERVER_CONNECTIONS, SERVER_PATIENCE_S);
	if (!s->clients) {
		close(fd);
		return error_set(err, -ENOMEM, "no thread can be started for the server");
	}
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
	struct server *s = xcalloc(1, sizeof *s);
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

int server_look(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	const int e = look(s);
	if (!e && s->c.looked)
		s->c.looked(s->c.data);
	pthread_mutex_unlock(&s->lock);
	return e;
}

void server_stop(struct server *s)
{
	if (s->metrics)
		mhd.MHD_stop_daemon(s->metrics);
	if (s->control)
		mhd.MHD_stop_daemon(s->control);
	clients_free(s->clients);
	if (*s->socket)
		unlink(s->socket);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

#else

int server_load(struct error *err)
{
	return error_set(err, -ENOSYS, "this Weir was built without libmicrohttpd");
}

int server_start(
	const struct server_config *c, struct server **ret_s, unsigned *ret_port, struct error *err)
{
	return server_load(err);
}

int server_look(struct server *s)
{
	return -ENOSYS;
}

void server_stop(struct server *s)
{
}

#endif
