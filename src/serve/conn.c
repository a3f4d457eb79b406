/*
 * A connection's bytes, whichever protocol they are of.  The first bytes say which: HTTP/2 begins
 * with "PRI * HTTP/2.0".  Writes go out at once, and what the socket doesn't take waits in `out`.
 *
 * A client has ten seconds for a head, and more for a body by its size, in total: bytes that come
 * one by one don't renew that.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/internal.h"

#define PREFACE    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define LINGER_NS  2000000000u
#define OUT_MOST   (4u << 20) /* of a client that doesn't read */
#define READ_CHUNK (64u << 10)

void conn_new(struct loop *l, int fd, bool trusted)
{
	struct conn *c = xcalloc(1, sizeof *c);
	*c = (struct conn){ .loop = l,
		.fd = fd,
		.trusted = trusted,
		.next = l->conns,
		.until_ns = l->now + l->server->o.idle_ns,
		.events = EPOLLIN | EPOLLRDHUP };
	struct epoll_event e = { .events = c->events, .data.ptr = c };
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e)) {
		close(fd);
		free(c);
		return;
	}
	if (l->conns)
		l->conns->prev = c;
	l->conns = c;
	add_relaxed(&l->connections, 1);
}

/* The loop frees it when nothing of its turn can point to it. */
void conn_close(struct conn *c)
{
	if (c->dead)
		return;
	c->dead = c->loop->any_dead = true;
	c->until_ns = UINT64_MAX;
	epoll_ctl(c->loop->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	if (c->kind == CONN_HTTP2)
		http2_closed(c);
	else if (c->kind == CONN_HTTP1)
		http1_closed(c);
}

bool conn_is_full(const struct conn *c)
{
	return c->out.n - c->out_at > OUT_MOST;
}

/* The events that the socket is waited for: not for bytes while earlier ones wait for an answer. */
static void update_events(struct conn *c)
{
	const bool full = c->kind == CONN_HTTP1 && (c->state == AWAIT_ANSWER || c->paused) &&
			  c->in_at < c->in.n;
	const uint32_t want =
		EPOLLRDHUP | (full ? 0u : EPOLLIN) | (c->out_at < c->out.n ? EPOLLOUT : 0u);
	if (c->dead || want == c->events)
		return;
	struct epoll_event e = { .events = want, .data.ptr = c };
	epoll_ctl(c->loop->epoll, EPOLL_CTL_MOD, c->fd, &e);
	c->events = want;
}

/* The client still sends: closed now, it would lose its answer. */
static void linger(struct conn *c)
{
	if (c->kind == CONN_HTTP1)
		http1_closed(c);
	else if (c->kind == CONN_HTTP2)
		http2_closed(c);
	c->kind = CONN_ENDING;
	c->until_ns = c->loop->now + LINGER_NS;
	shutdown(c->fd, SHUT_WR);
}

/* False: the socket takes no more now, or is gone. */
static bool write_out(struct conn *c)
{
	while (c->out_at < c->out.n) {
		const ssize_t n =
			send(c->fd, c->out.v + c->out_at, c->out.n - c->out_at, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0 && errno != EINTR) {
			conn_close(c);
			return false;
		}
		c->out_at += n > 0 ? (size_t)n : 0;
	}
	c->out.n = c->out_at = 0;
	if (c->out.room > OUT_MOST)
		buf_free(&c->out);
	return true;
}

static void choose_protocol(struct conn *c)
{
	const size_t n = MIN(c->in.n, sizeof PREFACE - 1);
	if (memcmp(c->in.v, PREFACE, n) != 0)
		c->kind = CONN_HTTP1;
	else if (n == sizeof PREFACE - 1)
		c->kind = http2_begin(c) ? CONN_HTTP2 : CONN_HTTP1;
}

static void parse(struct conn *c)
{
	if (c->kind == CONN_NEW)
		choose_protocol(c);
	if (c->kind == CONN_HTTP2)
		http2_read(c);
	else if (c->kind == CONN_HTTP1)
		http1_read(c);
	else if (c->kind == CONN_ENDING)
		c->in_at = c->in.n;
	if (!c->dead && c->in_at == c->in.n)
		c->in.n = c->in_at = 0;
}

/* The next part of what is to be written; false: there is none. */
static bool go_on(struct conn *c)
{
	if (c->kind == CONN_HTTP2)
		return http2_pump(c);
	const bool was_paused = c->paused;
	c->paused = false;
	if (was_paused)
		parse(c);
	return was_paused && c->out_at < c->out.n;
}

void conn_flush(struct conn *c)
{
	bool all = !c->dead;
	do
		all = all && write_out(c);
	while (all && go_on(c));
	if (all && c->closing && c->kind != CONN_ENDING)
		linger(c);
	update_events(c);
}

void conn_later(struct conn *c)
{
	if (c->later || c->dead)
		return;
	c->later = true;
	c->next_later = c->loop->later;
	c->loop->later = c;
}

/* A large body of HTTP/1.1 is read where it will be used. */
static struct buf *target(struct conn *c, size_t *ret_most)
{
	*ret_most = READ_CHUNK;
	if (c->kind != CONN_HTTP1 || c->state != READ_BODY || c->in_at != c->in.n)
		return &c->in;
	*ret_most = c->body_left;
	return &c->exchange->body;
}

/* False when there is nothing more for now. */
static bool read_once(struct conn *c)
{
	size_t most;
	struct buf *b = target(c, &most);
	if (b == &c->in && c->in_at) {
		memmove(c->in.v, c->in.v + c->in_at, c->in.n - c->in_at);
		c->in.n -= c->in_at;
		c->in_at = 0;
	}
	const ssize_t n = recv(c->fd, buf_more(b, most), most, 0);
	if (n <= 0) {
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			conn_close(c);
		return false;
	}
	b->n += (size_t)n;
	if (b != &c->in)
		c->body_left -= (size_t)n;
	parse(c);
	return (size_t)n == most && !(c->kind == CONN_HTTP1 && c->state == AWAIT_ANSWER);
}

void conn_ready(struct conn *c, uint32_t events)
{
	if (events & (EPOLLERR | EPOLLHUP)) {
		conn_close(c);
		return;
	}
	if (events & EPOLLOUT)
		conn_flush(c);
	/* Bytes that a client sends before it has its answer wait in the socket, after the first
	 * part.
	 */
	if (!c->dead && events & (EPOLLIN | EPOLLRDHUP))
		for (int i = 0; i < 4 && !c->dead && read_once(c); i++)
			;
	conn_later(c);
}

int exchange_count(struct exchange *x, uint64_t bytes, struct error *err)
{
	struct server *s = x->loop->server;
	const uint64_t before = add_relaxed(&s->held_bytes, bytes);
	x->held += bytes;
	if (before + bytes <= s->o.memory_bytes)
		return 0;
	add_relaxed(&s->refused_bytes, 1);
	return error_set(err, -ENOBUFS,
		"the server has no room for this request: all requests together may have %llu MiB",
		(unsigned long long)(s->o.memory_bytes >> 20));
}

bool exchange_hold(struct exchange *x, uint64_t bytes)
{
	struct error err;
	const int e = exchange_count(x, bytes, &err);
	if (e)
		exchange_fail(x, e, "%s", err.text);
	return !e;
}
