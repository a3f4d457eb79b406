/* See client.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

#define HEAD_MOST 8192
#define EVENTS    256

struct connection {
	int fd;    /* -1: closed */
	bool busy; /* a request is under way */
	const char *out;
	size_t out_left;
	uint64_t tag;
	char head[HEAD_MOST];
	size_t head_n;
	bool in_body, close;
	uint64_t body_left;
	int code;
};

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_un un;
	};
	socklen_t n;
};

struct client {
	struct address to;
	client_ended *ended;
	void *of;
	int epoll;
	struct connection *all;
	unsigned most, busy, opened;
	unsigned *free_list, frees; /* open ones without a request, the last used on top */
	unsigned *closed_list, closeds;
};

uint64_t client_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int address_read(const char *text, struct address *ret)
{
	memset(ret, 0, sizeof *ret);
	if (strncmp(text, "unix:", 5) == 0) {
		ret->un.sun_family = AF_UNIX;
		if (strlen(text + 5) >= sizeof ret->un.sun_path)
			return -ENAMETOOLONG;
		memcpy(ret->un.sun_path, text + 5, strlen(text + 5) + 1);
		ret->n = sizeof ret->un;
		return 0;
	}
	const char *colon = strrchr(text, ':');
	char host[64];
	if (!colon || (size_t)(colon - text) >= sizeof host)
		return -EINVAL;
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = 0;
	ret->in.sin_family = AF_INET;
	ret->in.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	ret->n = sizeof ret->in;
	const char *number = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
	return inet_pton(AF_INET, number, &ret->in.sin_addr) == 1 ? 0 : -EINVAL;
}

struct client *client_new(const char *address, unsigned most, client_ended *ended, void *of)
{
	struct client *c = calloc(1, sizeof *c);
	if (!c || address_read(address, &c->to) != 0) {
		fprintf(stderr, "bench-serve: %s is not ADDRESS:PORT or unix:PATH\n", address);
		free(c);
		return NULL;
	}
	c->ended = ended;
	c->of = of;
	c->most = most;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->all = calloc(most, sizeof *c->all);
	c->free_list = calloc(most, sizeof *c->free_list);
	c->closed_list = calloc(most, sizeof *c->closed_list);
	if (c->epoll < 0 || !c->all || !c->free_list || !c->closed_list) {
		fprintf(stderr, "bench-serve: no memory for %u connections\n", most);
		client_free(c);
		return NULL;
	}
	for (unsigned i = most; i-- > 0;) {
		c->all[i].fd = -1;
		c->closed_list[c->closeds++] = i;
	}
	return c;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	if (c->all)
		client_drop(c);
	if (c->epoll >= 0)
		close(c->epoll);
	free(c->all);
	free(c->free_list);
	free(c->closed_list);
	free(c);
}

static void shut(struct client *c, unsigned i)
{
	struct connection *n = &c->all[i];
	close(n->fd);
	n->fd = -1;
	c->closed_list[c->closeds++] = i;
	if (!n->busy) /* it lies in the list of free ones */
		for (unsigned k = 0; k < c->frees; k++)
			if (c->free_list[k] == i) {
				c->free_list[k] = c->free_list[--c->frees];
				break;
			}
}

static void end(struct client *c, unsigned i, int code)
{
	struct connection *n = &c->all[i];
	const bool again = code != 0 && !n->close;
	const uint64_t tag = n->tag;
	c->busy--;
	if (again) {
		n->busy = false;
		c->free_list[c->frees++] = i;
	} else {
		shut(c, i);
		n->busy = false;
	}
	c->ended(c->of, tag, code, client_now());
}

static bool open_one(struct client *c)
{
	if (c->closeds == 0)
		return false;
	const int fd = socket(c->to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (c->to.any.sa_family == AF_INET)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (connect(fd, &c->to.any, c->to.n) != 0 && errno != EINPROGRESS) {
		close(fd);
		return false;
	}
	const unsigned i = c->closed_list[--c->closeds];
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.u32 = i };
	epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &e);
	c->all[i].fd = fd;
	c->all[i].busy = false;
	c->free_list[c->frees++] = i;
	c->opened++;
	return true;
}

void client_open(struct client *c, unsigned count)
{
	while (c->most - c->closeds < count && open_one(c))
		;
}

/* false: the connection broke. */
static bool write_more(struct connection *n)
{
	while (n->out_left > 0) {
		const ssize_t done = send(n->fd, n->out, n->out_left, MSG_NOSIGNAL);
		if (done < 0)
			return errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
		n->out += done;
		n->out_left -= (size_t)done;
	}
	return true;
}

int client_send(struct client *c, const char *bytes, size_t size, uint64_t tag)
{
	if (c->frees == 0 && !open_one(c))
		return -EAGAIN;
	const unsigned i = c->free_list[--c->frees];
	struct connection *n = &c->all[i];
	n->busy = true;
	n->out = bytes;
	n->out_left = size;
	n->tag = tag;
	n->head_n = 0;
	n->in_body = n->close = false;
	n->code = 0;
	c->busy++;
	if (!write_more(n))
		end(c, i, 0);
	return 0;
}

/* The value of a field of the head, or NULL. */
static const char *field(const struct connection *n, size_t head, const char *name)
{
	const size_t length = strlen(name);
	for (size_t at = 0; at + length < head; at++)
		if (n->head[at] == '\n' && strncasecmp(n->head + at + 1, name, length) == 0) {
			const char *value = n->head + at + 1 + length;
			while (*value == ' ')
				value++;
			return value;
		}
	return NULL;
}

/* Adds the bytes to the answer; true when the answer is whole. */
static bool take(struct connection *n, const char *bytes, size_t size)
{
	if (n->in_body) {
		n->body_left -= size < n->body_left ? size : n->body_left;
		return n->body_left == 0;
	}
	const size_t room = sizeof n->head - 1 - n->head_n;
	const size_t some = size < room ? size : room;
	const size_t before = n->head_n > 3 ? n->head_n - 3 : 0;
	memcpy(n->head + n->head_n, bytes, some);
	n->head_n += some;
	n->head[n->head_n] = 0;
	const char *stop = strstr(n->head + before, "\r\n\r\n");
	if (!stop)
		return false;
	const size_t head = (size_t)(stop - n->head) + 4;
	n->code = n->head_n > 12 ? (int)strtol(n->head + 9, NULL, 10) : 0;
	const char *length = field(n, head, "content-length:");
	const char *connection = field(n, head, "connection:");
	n->close = connection && strncasecmp(connection, "close", 5) == 0;
	n->body_left = length ? strtoull(length, NULL, 10) : 0;
	n->in_body = true;
	const size_t rest = size - (some - (n->head_n - head));
	n->body_left -= rest < n->body_left ? rest : n->body_left;
	return n->body_left == 0;
}

/* Edges are reported once: of a connection that the server closed, all is read up to its end. */
static void read_more(struct client *c, unsigned i, bool hung)
{
	static char bytes[1 << 16];
	struct connection *n = &c->all[i];
	for (;;) {
		const ssize_t got = recv(n->fd, bytes, sizeof bytes, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0) {
			if (n->busy)
				end(c, i, 0);
			else
				shut(c, i);
			return;
		}
		if (!n->busy) { /* an answer that nobody asked for */
			shut(c, i);
			return;
		}
		if (take(n, bytes, (size_t)got)) {
			end(c, i, n->code);
			if (!hung || n->fd < 0)
				return;
		}
		if ((size_t)got < sizeof bytes && !hung)
			return;
	}
}

void client_wait(struct client *c, uint64_t until)
{
	const uint64_t now = client_now(), left = until > now ? until - now : 0;
	const struct timespec timeout = { .tv_sec = (time_t)(left / 1000000000u),
		.tv_nsec = (long)(left % 1000000000u) };
	struct epoll_event events[EVENTS];
	const int count = epoll_pwait2(c->epoll, events, EVENTS, &timeout, NULL);
	for (int k = 0; k < count; k++) {
		const unsigned i = events[k].data.u32;
		struct connection *n = &c->all[i];
		if (n->fd < 0)
			continue;
		if (n->busy && !write_more(n)) {
			end(c, i, 0);
			continue;
		}
		const bool hung = events[k].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
		if (hung || (events[k].events & EPOLLIN))
			read_more(c, i, hung);
	}
}

unsigned client_busy(const struct client *c)
{
	return c->busy;
}

unsigned client_opened(const struct client *c)
{
	return c->opened;
}

void client_drop(struct client *c)
{
	for (unsigned i = 0; i < c->most; i++)
		if (c->all[i].fd >= 0) {
			close(c->all[i].fd);
			c->all[i].fd = -1;
			c->all[i].busy = false;
			c->closed_list[c->closeds++] = i;
		}
	c->frees = c->busy = 0;
}

char *client_ask(const char *address, const char *path, int *ret_code)
{
	struct address to;
	if (address_read(address, &to) != 0)
		return NULL;
	const int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, &to.any, to.n) != 0) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 10 },
		sizeof(struct timeval));
	dprintf(fd, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
	size_t n = 0, room = 1 << 20;
	char *all = malloc(room + 1), *body = NULL;
	for (ssize_t got; all && !body && n < room && (got = read(fd, all + n, room - n)) > 0;) {
		n += (size_t)got;
		all[n] = 0;
		const char *stop = strstr(all, "\r\n\r\n");
		const char *length = strcasestr(all, "\r\ncontent-length:");
		if (!stop || !length || length > stop ||
			(size_t)(all + n - stop - 4) < strtoull(length + 17, NULL, 10))
			continue;
		*ret_code = (int)strtol(all + 9, NULL, 10);
		body = strdup(stop + 4);
	}
	close(fd);
	free(all);
	return body;
}
