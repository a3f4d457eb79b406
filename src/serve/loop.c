/*
 * A loop waits for its sockets and for exchanges that come back from the device or the keeper.  All
 * loops wait at the same listening sockets, and the kernel wakes one of them for a connection.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/internal.h"

#define CONNECTIONS_MOST 4096
#define SWEEP_NS         500000000u
#define GRACE_NS         300000000u
#define QUIET_NS         100000u
/* The loop itself runs batches that take no longer than what that saves: the calls that wake two
 * threads, and on a quiet server also the time until they run. */
#define BORROWED_NS       20000u
#define BORROWED_QUIET_NS 100000u

void exchange_return(struct exchange *x)
{
	struct loop *l = x->loop;
	struct exchange *head = load_relaxed(&l->inbox);
	do
		x->next = head;
	while (!atomic_compare_exchange_weak_explicit(
		&l->inbox, &head, x, memory_order_seq_cst, memory_order_relaxed));
	/* Pairs with the store of `asleep` in wait_for_work(): one of both sees the other. */
	if (atomic_exchange_explicit(&l->asleep, false, memory_order_seq_cst))
		loop_wake(l);
}

void loop_wake(struct loop *l)
{
	const uint64_t one = 1;
	if (write(l->wake, &one, sizeof one) < 0) {
		/* Full: it is awake. */
	}
}

/* Takes the exchanges that came back, the first first. */
static void take_inbox(struct loop *l)
{
	struct exchange *x = atomic_exchange_explicit(&l->inbox, NULL, memory_order_acquire);
	struct exchange *first = NULL;
	while (x) {
		struct exchange *next = x->next;
		x->next = first;
		first = x;
		x = next;
	}
	while ((x = first) != NULL) {
		first = x->next;
		x->away = false;
		if (x->match.route == ROUTE_INFER || x->match.route == ROUTE_STREAM_INFER)
			infer_finish(x);
		else
			control_finish(x);
	}
}

/* If no descriptor is left, one that is kept for that takes the connection, to close it: one that
 * stayed would wake the loop again at once. */
static int accept_one(struct loop *l, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || l->kept < 0)
		return fd;
	close(l->kept);
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	l->kept = eventfd(0, EFD_CLOEXEC);
	return -1;
}

static void accept_some(struct loop *l, const struct listener *listener)
{
	const int one = 1;
	for (int i = 0; i < 16; i++) {
		const int fd = accept_one(l, listener->fd);
		if (fd < 0)
			return;
		if (load_relaxed(&l->connections) >= CONNECTIONS_MOST) {
			close(fd);
			continue;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		conn_new(l, fd, listener->trusted);
	}
}

/* Cuts clients that take too long, or ask nothing for long. */
static void sweep(struct loop *l)
{
	for (struct conn *c = l->conns; c; c = c->next)
		if (c->until_ns < l->now && c->kind == CONN_HTTP2 && !c->closing)
			http2_end(c);
		else if (c->until_ns < l->now)
			conn_close(c);
		else if (c->kind == CONN_HTTP2)
			http2_sweep(c);
}

static void free_dead(struct loop *l)
{
	if (!l->any_dead)
		return;
	l->any_dead = false;
	for (struct conn *c = l->conns, *next; c; c = next) {
		next = c->next;
		if (!c->dead)
			continue;
		*(c->prev ? &c->prev->next : &l->conns) = c->next;
		if (c->next)
			c->next->prev = c->prev;
		close(c->fd);
		buf_free(&c->in, &c->out);
		free(c);
		sub_relaxed(&l->connections, 1);
	}
}

static void flush(struct loop *l)
{
	while (l->later) {
		struct conn *c = l->later;
		l->later = c->next_later;
		c->later = false;
		conn_flush(c);
	}
}

static int wait_for_work(struct loop *l, struct epoll_event *events, int most)
{
	atomic_store_explicit(&l->asleep, true, memory_order_seq_cst);
	const bool idle = !atomic_load_explicit(&l->inbox, memory_order_seq_cst);
	const int longest = l->stopped_ns ? 20 : 500;
	const int n = epoll_wait(l->epoll, events, most, idle ? longest : 0);
	atomic_store_explicit(&l->asleep, false, memory_order_seq_cst);
	return n;
}

static void handle(struct loop *l, const struct epoll_event *e)
{
	struct server *s = l->server;
	if (e->data.ptr == l) {
		uint64_t count;
		if (read(l->wake, &count, sizeof count) < 0) {
			/* Somebody read it before. */
		}
		return;
	}
	for (unsigned i = 0; i < s->nlisteners; i++)
		if (e->data.ptr == &s->listeners[i]) {
			accept_some(l, &s->listeners[i]);
			return;
		}
	struct conn *c = e->data.ptr;
	if (!c->dead)
		conn_ready(c, e->events);
}

/* Takes the connections that wait, and no more. */
static void end_listening(struct loop *l)
{
	struct server *s = l->server;
	l->stopped_ns = l->now;
	for (unsigned i = 0; i < s->nlisteners; i++) {
		accept_some(l, &s->listeners[i]);
		epoll_ctl(l->epoll, EPOLL_CTL_DEL, s->listeners[i].fd, NULL);
		shutdown(s->listeners[i].fd, SHUT_RD);
	}
}

static bool is_idle(const struct conn *c)
{
	return !c->exchange && c->out.n == c->out_at &&
	       (c->kind == CONN_NEW || c->state == READ_HEAD) && c->in.n == c->in_at;
}

/* A request may be on its way: clients learn of the end by the answer to their next one, and those
 * that send none for a while are cut. */
static bool all_closed(struct loop *l)
{
	const bool now = load_acquire(&l->server->ends);
	if (!l->stopped_ns)
		end_listening(l);
	const bool late = l->now - l->stopped_ns > GRACE_NS;
	for (struct conn *c = l->conns; c; c = c->next) {
		if (now)
			conn_close(c);
		else if (c->kind == CONN_HTTP2)
			http2_drain(c, late);
		else if (late && is_idle(c))
			conn_close(c);
	}
	flush(l);
	free_dead(l);
	return !l->conns;
}

/*
 * Whether a request that was read now is the only one for a while: it is all that woke the loop,
 * which slept, or had the last one from the same client.  Otherwise more is to come, and batches
 * grow while the device runs.
 */
static bool is_quiet(struct loop *l, const struct epoll_event *events, int n)
{
	const uint64_t last = l->last;
	if (n == 0 || (n == 1 && events[0].data.ptr == l)) /* answers alone */
		return false;
	l->last = n == 1 ? events[0].data.u64 : 0;
	return n == 1 && (l->last == last || l->now - l->ended_ns > QUIET_NS);
}

static bool wake_device(struct loop *l, uint64_t most_ns)
{
	const bool admitted = l->admitted;
	l->admitted = false;
	return admitted && device_wake(&l->server->device, most_ns);
}

static void *loop_run(void *data)
{
	struct loop *l = data;
	struct epoll_event events[64];
	uint64_t swept = monotonic_ns();
	for (;;) {
		const int n = wait_for_work(l, events, 64);
		l->now = monotonic_ns();
		for (int i = 0; i < n; i++)
			handle(l, &events[i]);
		take_inbox(l);
		if (wake_device(l, is_quiet(l, events, n) ? BORROWED_QUIET_NS : BORROWED_NS))
			take_inbox(l);
		if (l->now - swept > SWEEP_NS) {
			swept = l->now;
			sweep(l);
		}
		flush(l);
		free_dead(l);
		wake_device(l, 0); /* of what stood behind a request that was answered */
		if (l->log.n)
			log_put(l->server->log, &l->log);
		l->ended_ns = monotonic_ns();
		add_relaxed(&l->busy_ns, l->ended_ns - l->now);
		if (load_acquire(&l->server->stopping) && all_closed(l))
			return NULL;
	}
}

int loop_start(struct loop *l, struct server *s, struct error *err)
{
	l->server = s;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = l };
	l->kept = eventfd(0, EFD_CLOEXEC);
	if (l->epoll < 0 || l->wake < 0 || l->kept < 0 ||
		epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->wake, &e))
		return error_set(err, -errno, "no descriptors are left for a loop of the server");
	for (unsigned i = 0; i < s->nlisteners; i++) {
		e = (struct epoll_event){ .events = EPOLLIN | EPOLLEXCLUSIVE,
			.data.ptr = &s->listeners[i] };
		epoll_ctl(l->epoll, EPOLL_CTL_ADD, s->listeners[i].fd, &e);
	}
	const int code = pthread_create(&l->thread, NULL, loop_run, l);
	return code ? error_set(err, -code, "a thread of the server does not start") : 0;
}

void loop_join(struct loop *l)
{
	pthread_join(l->thread, NULL);
}

/* When no thread is left that could return an exchange. */
void loop_fini(struct loop *l)
{
	struct exchange *left = load_acquire(&l->inbox);
	for (struct exchange *x = left, *next; x; x = next) {
		next = x->next;
		exchange_free(x);
	}
	for (struct exchange *x = l->spare, *next; x; x = next) {
		next = x->next;
		exchange_release(x);
	}
	close(l->epoll);
	close(l->wake);
	if (l->kept >= 0)
		close(l->kept);
	buf_free(&l->log);
}
