/* Asks servers of models what they do, and makes rates of two answers. */
#include "monitor/servers.h"

#include <string.h>

#ifdef WEIR_JANSSON

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/monotonic.h"
#include "base/sort.h"

#define SERVERS_MOST 32
#define ANSWER_MOST  (4u << 20)
#define MODELS_MOST  4096

struct asked {
	uint32_t pid;
	int fd;
	struct buf answer;
};

static uint64_t now_ms(void)
{
	return monotonic_ns() / 1000000;
}

/* -1: nobody is there, or it is not this user's. */
static int ask(const char *directory, const char *name)
{
	static const char request[] =
		"GET /v2/weir/models HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n";
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct stat st;
	const int n = snprintf(a.sun_path, sizeof a.sun_path, "%s/%s", directory, name);
	if (n <= 0 || (size_t)n >= sizeof a.sun_path || lstat(a.sun_path, &st) ||
		!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return -1;
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
		send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == sizeof request - 1)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static unsigned ask_all(const char *directory, struct asked *all)
{
	unsigned n = 0;
	DIR *d = *directory ? opendir(directory) : NULL;
	for (struct dirent *e; d && n < SERVERS_MOST && (e = readdir(d));) {
		uint32_t pid;
		int end = 0;
		if (sscanf(e->d_name, "serve-%9u.sock%n", &pid, &end) != 1 || !end ||
			e->d_name[end])
			continue;
		const int fd = ask(directory, e->d_name);
		if (fd >= 0)
			all[n++] = (struct asked){ .pid = pid, .fd = fd };
	}
	if (d)
		closedir(d);
	return n;
}

/* False: it has ended, or says too much. */
static bool receive(struct asked *a)
{
	for (;;) {
		if (a->answer.n >= ANSWER_MOST)
			return false;
		char *to = buf_more(&a->answer, 16384);
		const ssize_t n = recv(a->fd, to, 16384, 0);
		a->answer.n += n > 0 ? (size_t)n : 0;
		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
	}
}

static void receive_all(struct asked *all, unsigned n)
{
	const uint64_t end = now_ms() + SERVERS_WAIT_MS;
	struct pollfd fds[SERVERS_MOST];
	unsigned open = n;
	for (unsigned i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = all[i].fd, .events = POLLIN };
	for (uint64_t now; open && (now = now_ms()) < end;) {
		if (poll(fds, n, (int)(end - now)) <= 0)
			continue;
		for (unsigned i = 0; i < n; i++)
			if (fds[i].revents && !receive(&all[i])) {
				fds[i].fd = -1;
				open--;
			}
	}
	for (unsigned i = 0; i < n; i++) {
		close(all[i].fd);
		if (fds[i].fd >= 0)
			all[i].answer.n = 0; /* not all of it came */
	}
}

static uint64_t number(const json_t *value)
{
	const json_int_t n = json_integer_value(value);
	return n > 0 ? (uint64_t)n : 0;
}

static uint64_t get(const json_t *from, const char *key)
{
	return number(json_object_get(from, key));
}

static void read_latency(struct served_model *m, const json_t *list)
{
	size_t i;
	json_t *pair;
	json_array_foreach((json_t *)list, i, pair)
	{
		const struct served_bucket b = { number(json_array_get(pair, 0)),
			number(json_array_get(pair, 1)) };
		if (m->buckets == SERVERS_BUCKETS ||
			(m->buckets && b.end_ns <= m->latency[m->buckets - 1].end_ns))
			return;
		m->latency[m->buckets++] = b;
	}
}

static void read_rows(struct served_model *m, const json_t *list)
{
	size_t i;
	json_t *pair;
	json_array_foreach((json_t *)list, i, pair)
	{
		const uint64_t n = number(json_array_get(pair, 1));
		m->batches += n;
		m->rows += n * number(json_array_get(pair, 0));
	}
}

static void read_model(struct servers *s, const json_t *from, uint32_t pid, uint64_t ns)
{
	const char *name = json_string_value(json_object_get(from, "name"));
	if (!name || s->models.n >= MODELS_MOST)
		return;
	struct served_model m = { .pid = pid,
		.ns = ns,
		.version = get(from, "version"),
		.success = get(from, "success"),
		.failed = get(from, "failed"),
		.cancelled = get(from, "cancelled"),
		.met = get(from, "met"),
		.late = get(from, "late"),
		.shed = get(from, "shed"),
		.refused = get(from, "refused"),
		.queued = get(from, "queued"),
		.predicted_one_ns = get(from, "predicted_one_ns"),
		.predicted_max_ns = get(from, "predicted_max_ns") };
	snprintf(m.name, sizeof m.name, "%s", name);
	for (char *c = m.name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	read_latency(&m, json_object_get(from, "latency_ns"));
	read_rows(&m, json_object_get(from, "batch_rows"));
	*array_push(&s->models) = m;
}

static void read_answer(struct servers *s, const struct asked *a)
{
	static const char ok[] = "HTTP/1.1 200 ";
	if (a->answer.n < sizeof ok || memcmp(a->answer.v, ok, sizeof ok - 1) != 0)
		return;
	const char *body = memmem(a->answer.v, a->answer.n, "\r\n\r\n", 4);
	if (!body)
		return;
	body += 4;
	json_t *all = json_loadb(body, a->answer.n - (size_t)(body - a->answer.v), 0, NULL), *model;
	size_t i;
	json_array_foreach(json_object_get(all, "models"), i, model)
		read_model(s, model, a->pid, get(all, "monotonic_ns"));
	json_decref(all);
}

static uint64_t before_in(const struct served_model *b, uint64_t end_ns)
{
	for (uint32_t i = 0; i < b->buckets; i++)
		if (b->latency[i].end_ns == end_ns)
			return b->latency[i].n;
	return 0;
}

/* The end of the bucket that has the quantile; 0: no request ended. */
static uint64_t quantile(
	const struct served_model *m, const struct served_model *b, uint64_t all, double q)
{
	double left = (double)all * q;
	for (uint32_t i = 0; all && i < m->buckets; i++) {
		left -= (double)sat_sub(m->latency[i].n, before_in(b, m->latency[i].end_ns));
		if (left <= 0)
			return m->latency[i].end_ns;
	}
	return 0;
}

static void rate(struct served_model *m, const struct served_model *b)
{
	const uint64_t took = sat_sub(m->ns, b->ns), success = sat_sub(m->success, b->success);
	const uint64_t unrun = sat_sub(m->shed, b->shed) + sat_sub(m->refused, b->refused);
	const uint64_t batches = sat_sub(m->batches, b->batches);
	uint64_t all = 0;
	if (!took)
		return;
	m->has_rate = true;
	m->requests_per_s = (double)success * 1e9 / (double)took;
	m->has_missed = success + unrun > 0;
	if (m->has_missed)
		m->missed = (double)(sat_sub(m->late, b->late) + unrun) / (double)(success + unrun);
	if (batches)
		m->mean_rows = (double)sat_sub(m->rows, b->rows) / (double)batches;
	for (uint32_t i = 0; i < m->buckets; i++)
		all += sat_sub(m->latency[i].n, before_in(b, m->latency[i].end_ns));
	m->p50_ns = quantile(m, b, all, .5);
	m->p99_ns = quantile(m, b, all, .99);
}

static const struct served_model *find_before(const struct servers *s, const struct served_model *m)
{
	array_each(const struct served_model, b, s->before)
		if (b->pid == m->pid && b->version == m->version && strcmp(b->name, m->name) == 0)
			return b;
	return NULL;
}

ORDERING(by_name, struct served_model, strcmp(a->name, b->name), ORDER(a->pid, b->pid),
	ORDER(a->version, b->version))

void servers_look(struct servers *s)
{
	struct asked all[SERVERS_MOST];
	array_turn(&s->models, &s->before);
	const unsigned n = ask_all(s->directory, all);
	receive_all(all, n);
	for (unsigned i = 0; i < n; i++) {
		read_answer(s, &all[i]);
		buf_free(&all[i].answer);
	}
	SORT(s->models, by_name);
	for (size_t i = 0; i < s->models.n; i++) {
		const struct served_model *b = find_before(s, &s->models.v[i]);
		if (b)
			rate(&s->models.v[i], b);
	}
}

#else

void servers_look(struct servers *s)
{
}

#endif

void servers_fini(struct servers *s)
{
	array_free(&s->models, &s->before);
}

static void put_time(struct json *j, const char *key, uint64_t ns)
{
	if (ns)
		json_u64(j, key, ns);
}

static void put_model(struct json *j, const struct served_model *m)
{
	json_begin_object(j, NULL);
	json_u64(j, "pid", m->pid);
	json_str(j, "model", m->name);
	json_u64(j, "version", m->version);
	if (m->has_rate)
		json_put_real(j, "requests_per_s", m->requests_per_s);
	put_time(j, "p50_ns", m->p50_ns);
	put_time(j, "p99_ns", m->p99_ns);
	if (m->has_missed)
		json_put_real(j, "missed", m->missed);
	json_u64(j, "queued", m->queued);
	if (m->mean_rows > 0)
		json_put_real(j, "mean_batch_rows", m->mean_rows);
	put_time(j, "predicted_one_ns", m->predicted_one_ns);
	put_time(j, "predicted_max_ns", m->predicted_max_ns);
	json_u64(j, "success", m->success);
	json_u64(j, "failed", m->failed);
	json_u64(j, "cancelled", m->cancelled);
	json_u64(j, "met", m->met);
	json_u64(j, "late", m->late);
	json_u64(j, "shed", m->shed);
	json_u64(j, "refused", m->refused);
	json_end_object(j);
}

void servers_put_json(struct json *j, const struct servers *s)
{
	json_begin_array(j, "models");
	for (size_t i = 0; i < s->models.n; i++)
		put_model(j, &s->models.v[i]);
	json_end_array(j);
}
