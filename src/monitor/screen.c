/* Draws the screen of weir top. */
#include "monitor/screen.h"

#include <errno.h>
#include <inttypes.h>

#ifdef WEIR_NCURSES

#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "base/bounded.h"
#include "base/monotonic.h"
#include "base/number.h"
#include "base/sort.h"

#define CELL 64

enum { GOOD = 1, WARM, BAD }; /* pairs of colours */

struct column {
	const char *heading;
	int width;  /* negative: to the left */
	int from;   /* columns that the terminal has at least */
	char key;   /* that sorts by it */
	bool large; /* the largest first */
	int (*order)(const struct watch_program *a, const struct watch_program *b);
	void (*put)(struct bounded *to, const struct watch_program *p);
};

struct screen {
	const struct watch *watch;
	int sort, first; /* a column; the first program that is shown */
	bool reverse, help, utf8;
};

static void put_spark(struct bounded *to, const float *v, int count, double full, bool utf8)
{
	static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	for (int i = 0; i < count; i++) {
		const double share = full > 0 ? (double)v[i] / full : 0;
		const int level = share <= 0 ? -1 : share >= 1 ? 7 : (int)(share * 8);
		if (level < 0)
			bounded_char(to, ' ');
		else if (utf8)
			bounded_put(to, blocks[level]);
		else
			bounded_char(to, ".:-=+*#@"[level]);
	}
}

static void put_rate(struct bounded *to, bool known, double per_s)
{
	if (!known)
		bounded_char(to, '-');
	else if (per_s <= 0)
		bounded_char(to, '0');
	else if (per_s < 10)
		bounded_printf(to, "%.1f", per_s);
	else if (per_s < 1e5)
		bounded_printf(to, "%.0f", per_s);
	else if (per_s < 1e7)
		bounded_printf(to, "%.0fk", per_s / 1e3);
	else
		bounded_printf(to, "%.0fM", per_s / 1e6);
}

static void put_share(struct bounded *to, bool known, double share)
{
	if (!known)
		bounded_char(to, '-');
	else if (share > 0)
		bounded_printf(to, "%.*f", share < 0.0995, share * 100);
	else
		bounded_char(to, '0');
}

static void put_bytes(struct bounded *to, bool known, uint64_t bytes)
{
	struct number n;
	bounded_put(to, known ? number_bytes(&n, bytes) : "-");
}

static void put_ns(struct bounded *to, uint64_t ns)
{
	struct number n;
	bounded_put(to, ns ? number_ns(&n, ns) : "-");
}

#define PUT(name, ...)                                                                             \
	static void put_##name(struct bounded *to, const struct watch_program *p)                  \
	{                                                                                          \
		__VA_ARGS__;                                                                       \
	}
PUT(pid, bounded_printf(to, "%u", p->pid))
PUT(class, bounded_put(to, p->shares ? watch_class_name(p) : "recorded"))
PUT(busy, put_share(to, p->has_busy, p->busy))
PUT(launches, put_rate(to, watch_has_launches(p), p->launches_per_s))
PUT(calls, put_rate(to, watch_has_calls(p), p->calls_per_s))
PUT(requests, put_rate(to, watch_has_requests(p), p->requests_per_s))
PUT(p99, put_ns(to, p->request_p99_ns))
PUT(waiting, put_share(to, watch_has_requests(p), p->waiting))
PUT(memory, put_bytes(to, p->shares, p->memory_used))
PUT(quota, put_bytes(to, p->memory_quota, p->memory_quota))
#undef PUT

static void put_state(struct bounded *to, const struct watch_program *p)
{
	if (p->waits_for)
		bounded_printf(to, "waits %u", p->waits_for);
	else if (p->shares)
		bounded_put(to, p->inside ? "runs" : "idle");
	else
		bounded_char(to, '-');
}

static void put_name(struct bounded *to, const struct watch_program *p)
{
	for (const char *s = p->name; *s; s++)
		bounded_char(to, *s >= ' ' && *s <= '~' ? *s : '?');
}

#define BY(name, value)                                                                            \
	static int by_##name(const struct watch_program *a, const struct watch_program *b)         \
	{                                                                                          \
		return ORDER(a->value, b->value);                                                  \
	}
BY(pid, pid)
BY(class, class)
BY(state, waits_for)
BY(busy, busy)
BY(launches, launches_per_s)
BY(calls, calls_per_s)
BY(requests, requests_per_s)
BY(p99, request_p99_ns)
BY(waiting, waiting)
BY(memory, memory_used)
BY(quota, memory_quota)
#undef BY

static int by_name(const struct watch_program *a, const struct watch_program *b)
{
	return strcmp(a->name, b->name);
}

static const struct column columns[] = {
	{ "PID", 7, 0, 'N', false, by_pid, put_pid },
	{ "CLASS", -11, 0, 'C', false, by_class, put_class },
	{ "STATE", -13, 100, 'S', true, by_state, put_state },
	{ "BUSY%", 6, 0, 'P', true, by_busy, put_busy },
	{ "LAUNCH/S", 8, 0, 'L', true, by_launches, put_launches },
	{ "CALL/S", 7, 110, 'A', true, by_calls, put_calls },
	{ "REQ/S", 6, 0, 'R', true, by_requests, put_requests },
	{ "P99", 8, 0, 'T', true, by_p99, put_p99 },
	{ "WAIT%", 6, 0, 'W', true, by_waiting, put_waiting },
	{ "MEMORY", 9, 0, 'M', true, by_memory, put_memory },
	{ "QUOTA", 9, 120, 'Q', true, by_quota, put_quota },
};
#define COLUMNS   ((int)(sizeof columns / sizeof *columns))
#define SORT_BUSY 3
#define SPARK     20  /* characters, and where there is room for it */
#define SPARK_AT  130 /* columns */

/* One thread: qsort() has no place for it. */
static const struct screen *sorting;

static int program_order(const void *one, const void *two)
{
	const struct watch_program *a = *(struct watch_program *const *)one;
	const struct watch_program *b = *(struct watch_program *const *)two;
	const bool by_program = sorting->sort == COLUMNS;
	const struct column *c = &columns[by_program ? 0 : sorting->sort];
	int order = by_program ? by_name(a, b) : c->large ? c->order(b, a) : c->order(a, b);
	if (sorting->reverse)
		order = -order;
	return order ? order : ORDER(a->pid, b->pid);
}

/* As much of it as the line has columns: curses would go on in the next one. */
static void put_line(int y, const char *text)
{
	wchar_t wide[600];
	const size_t n = mbstowcs(wide, text, sizeof wide / sizeof *wide);
	if (n == (size_t)-1)
		mvaddnstr(y, 0, text, COLS);
	else
		mvaddnwstr(y, 0, wide, n < (size_t)COLS ? (int)n : COLS);
}

static void draw_head(const struct screen *s)
{
	char text[200], clock[16];
	struct bounded b = BOUNDED(text);
	struct tm tm;
	const struct watch *w = s->watch;
	const size_t models = w->servers ? w->servers->models.n : 0;
	const time_t now = time(NULL);
	strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &tm));
	bounded_printf(&b, "weir top %s  %zu program%s", clock, w->programs.n,
		w->programs.n == 1 ? "" : "s");
	if (models)
		bounded_printf(&b, "  %zu model%s", models, models == 1 ? "" : "s");
	if (*w->policy)
		bounded_printf(&b, "  policy %s%s, %s", w->policy,
			w->open ? ", all gates open" : "",
			w->has_arbiter ? "an arbiter runs" : "no arbiter runs");
	attron(A_BOLD);
	put_line(0, bounded_end(&b));
	attroff(A_BOLD);
}

static int colour_of(const struct gpu_sample *g)
{
	const uint16_t slowed = THROTTLE_POWER_CAP | THROTTLE_HARDWARE | THROTTLE_THERMAL |
				THROTTLE_HARDWARE_THERMAL | THROTTLE_POWER_BRAKE;
	if (g->reasons & slowed)
		return BAD;
	return g->busy_pct >= 90 ? WARM : GOOD;
}

static void draw_gpu(const struct screen *s, int y, const struct watch_gpu *g)
{
	char text[600];
	struct bounded b = BOUNDED(text);
	struct number used, all;
	const struct gpu_sample *n = &g->sample;
	const int spark = COLS >= 100 ? SPARK : 8;
	bounded_printf(&b, "GPU %u %3u%% ", n->device, n->busy_pct);
	put_spark(&b, g->history + WATCH_HISTORY - spark, spark, 100, s->utf8);
	if (n->valid & SAMPLE_HAS_MEMORY)
		bounded_printf(&b, " %s/%s", number_bytes(&used, n->memory_used),
			number_bytes(&all, n->memory_total));
	if (n->valid & SAMPLE_HAS_POWER)
		bounded_printf(&b, " %u/%u W", n->power_mw / 1000, n->power_limit_mw / 1000);
	if (n->valid & SAMPLE_HAS_CELSIUS)
		bounded_printf(&b, " %u C", n->celsius);
	if (n->valid & SAMPLE_HAS_SM_CLOCK)
		bounded_printf(&b, " %u MHz", n->sm_mhz);
	bounded_printf(&b, " %s", g->name);
	attron(COLOR_PAIR(colour_of(n)));
	put_line(y, bounded_end(&b));
	attroff(COLOR_PAIR(colour_of(n)));
}

static void put_cell(struct bounded *line, int width, const char *text)
{
	bounded_printf(line, "%*.*s ", width, abs(width), text);
}

static void draw_headings(const struct screen *s, int y)
{
	char text[400];
	struct bounded b = BOUNDED(text);
	for (int i = 0; i < COLUMNS; i++)
		if (COLS >= columns[i].from)
			put_cell(&b, columns[i].width, columns[i].heading);
	if (COLS >= SPARK_AT)
		put_cell(&b, -SPARK, "HISTORY");
	bounded_put(&b, "PROGRAM");
	attron(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	put_line(y, bounded_end(&b));
	attroff(A_REVERSE);
	for (int i = 0, x = 0; i < COLUMNS; i++) {
		if (COLS < columns[i].from)
			continue;
		if (i == s->sort)
			mvchgat(y, x, abs(columns[i].width), A_REVERSE | A_BOLD | A_UNDERLINE, 0,
				NULL);
		x += abs(columns[i].width) + 1;
	}
}

static double highest(const struct watch_program *p)
{
	double most = 0;
	if (p->shares)
		return 1;
	for (unsigned i = 0; i < WATCH_HISTORY; i++)
		most = MAX(p->history[i], most);
	return most;
}

static void draw_program(const struct screen *s, int y, const struct watch_program *p)
{
	char text[600], cell[CELL];
	struct bounded b = BOUNDED(text);
	for (int i = 0; i < COLUMNS; i++) {
		struct bounded c = BOUNDED(cell);
		if (COLS < columns[i].from)
			continue;
		columns[i].put(&c, p);
		put_cell(&b, columns[i].width, bounded_end(&c));
	}
	if (COLS >= SPARK_AT) {
		put_spark(&b, p->history + WATCH_HISTORY - SPARK, SPARK, highest(p), s->utf8);
		bounded_char(&b, ' ');
	}
	put_name(&b, p);
	if (p->waits_for)
		attron(COLOR_PAIR(WARM));
	put_line(y, bounded_end(&b));
	attroff(COLOR_PAIR(WARM));
}

static void draw_programs(struct screen *s, int y)
{
	const struct watch *w = s->watch;
	const int room = LINES - 1 - y, count = (int)w->programs.n;
	const struct watch_program **sorted = xcalloc(w->programs.n + 1, sizeof *sorted);
	for (int i = 0; i < count; i++)
		sorted[i] = &w->programs.v[i];
	sorting = s;
	qsort(sorted, w->programs.n, sizeof *sorted, program_order);
	s->first = MIN(count - room, s->first);
	s->first = MAX(0, s->first);
	for (int i = 0; i < room && s->first + i < count; i++)
		draw_program(s, y + i, sorted[s->first + i]);
	if (!count)
		put_line(y,
			"nothing shares a GPU or is recorded. Start one with: weir run -- ./program");
	free(sorted);
}

static void put_time(struct bounded *to, uint64_t ns)
{
	char cell[CELL];
	struct bounded c = BOUNDED(cell);
	put_ns(&c, ns);
	put_cell(to, 8, bounded_end(&c));
}

static void draw_model(int y, const struct served_model *m)
{
	char text[600], cell[CELL];
	struct bounded b = BOUNDED(text), rate = BOUNDED(cell);
	bounded_printf(&b, "%7u ", m->pid);
	put_rate(&rate, m->has_rate, m->requests_per_s);
	put_cell(&b, 6, bounded_end(&rate));
	put_time(&b, m->p50_ns);
	put_time(&b, m->p99_ns);
	struct bounded missed = BOUNDED(cell);
	put_share(&missed, m->has_missed, m->missed);
	put_cell(&b, 6, bounded_end(&missed));
	bounded_printf(&b, "%5" PRIu64 " ", m->queued);
	struct bounded rows = BOUNDED(cell);
	put_rate(&rows, m->mean_rows > 0, m->mean_rows);
	put_cell(&b, 6, bounded_end(&rows));
	bounded_printf(&b, "%s %" PRIu64, m->name, m->version);
	if (m->missed > .01)
		attron(COLOR_PAIR(BAD));
	put_line(y, bounded_end(&b));
	attroff(COLOR_PAIR(BAD));
}

/* The line below them; at most half of the screen has them. */
static int draw_models(const struct screen *s, int y)
{
	const struct servers *all = s->watch->servers;
	if (!all || !all->models.n)
		return y;
	attron(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	put_line(y++, "    PID  REQ/S      P50      P99  MISS% QUEUE  BATCH MODEL");
	attroff(A_REVERSE);
	for (size_t i = 0; i < all->models.n && y < LINES / 2; i++)
		draw_model(y++, &all->models.v[i]);
	return y;
}

static void draw_help(void)
{
	static const char *const lines[] = { "weir top: keys", "", "q          quit",
		"h ?        this help, and back",
		"< > arrows which column it is sorted by, left and right",
		"r          the other way round",
		"P          sort by BUSY%, M by MEMORY, L by LAUNCH/S,",
		"           W by WAIT%, T by P99, N by PID",
		"up down    the programs before and after", "",
		"BUSY%      share of the time in which a GPU ran something of it: recorded with",
		"           --gpu, or predicted under weir run; - where that is not known",
		"LAUNCH/S   kernels and graphs launched, of recorded programs",
		"WAIT%      time in which launches waited for other programs",
		"P99        of requests: 99 of 100 took no longer",
		"MISS%      requests that weir serve answered late, shed or refused", "",
		"A GPU's line: utilisation, memory, power, temperature and SM clock, as NVML",
		"has them; red while its clock is held down." };
	for (int i = 0; i < (int)(sizeof lines / sizeof *lines); i++)
		put_line(i, lines[i]);
}

static void draw(struct screen *s)
{
	int y = 1;
	erase();
	if (s->help) {
		draw_help();
	} else {
		draw_head(s);
		for (size_t i = 0; i < s->watch->gpus.n && y < LINES - 4; i++)
			draw_gpu(s, y++, &s->watch->gpus.v[i]);
		y = draw_models(s, y);
		draw_headings(s, y);
		draw_programs(s, y + 1);
	}
	put_line(LINES - 1,
		"q quit  h help  <> sort  r reverse  P busy  M memory  L launches  W wait");
	refresh();
}

static void move_sort(struct screen *s, int by)
{
	do
		s->sort = (s->sort + by + COLUMNS + 1) % (COLUMNS + 1);
	while (s->sort < COLUMNS && COLS < columns[s->sort].from);
}

static void sort_by_key(struct screen *s, int key)
{
	for (int i = 0; i < COLUMNS; i++)
		if (columns[i].key == key)
			s->sort = i;
}

/* False: it is the end. */
static bool obey(struct screen *s, int key)
{
	switch (key) {
	case 'q':
	case KEY_F(10):
		return false;
	case 'h':
	case '?':
	case KEY_F(1):
		s->help = !s->help;
		break;
	case 'r':
		s->reverse = !s->reverse;
		break;
	case '<':
	case KEY_LEFT:
		move_sort(s, -1);
		break;
	case '>':
	case KEY_RIGHT:
		move_sort(s, 1);
		break;
	case KEY_UP:
		s->first--;
		break;
	case KEY_DOWN:
		s->first++;
		break;
	default:
		sort_by_key(s, key);
	}
	return true;
}

static int64_t now_ms(void)
{
	return (int64_t)(monotonic_ns() / 1000000);
}

/* Without its terminal getch() would answer at once, again and again. */
static bool is_gone(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	return poll(&in, 1, 0) > 0 && in.revents & (POLLHUP | POLLERR | POLLNVAL);
}

static int loop(struct screen *s, int (*look)(void *), void *data, int interval_ms)
{
	int e = look(data), key;
	int64_t due = now_ms() + interval_ms;
	while (!e) {
		draw(s);
		const int64_t left = due - now_ms();
		timeout(left > 0 ? (int)left : 0);
		key = getch();
		if (key != ERR && !obey(s, key))
			break;
		if (key == ERR && is_gone())
			break;
		if (now_ms() < due)
			continue;
		e = look(data);
		due = now_ms() + interval_ms;
	}
	return e;
}

static void begin_colours(void)
{
	if (!has_colors() || getenv("NO_COLOR"))
		return;
	start_color();
	use_default_colors();
	init_pair(GOOD, COLOR_GREEN, -1);
	init_pair(WARM, COLOR_YELLOW, -1);
	init_pair(BAD, COLOR_RED, -1);
}

int screen_run(const struct watch *w, int (*look)(void *data), void *data, int interval_ms)
{
	struct screen s = { .watch = w, .sort = SORT_BUSY };
	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C");
	s.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	SCREEN *terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return -ENOTTY;
	cbreak();
	noecho();
	keypad(stdscr, true);
	curs_set(0);
	begin_colours();
	const int e = loop(&s, look, data, interval_ms);
	endwin();
	delscreen(terminal);
	return e;
}

#else

int screen_run(const struct watch *w, int (*look)(void *data), void *data, int interval_ms)
{
	return -ENOSYS;
}

#endif
