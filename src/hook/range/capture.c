/* Opens and closes the part of a run that is recorded. */
#include "hook/range/capture.h"

#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "event/schema.h"
#include "hook/core/call.h"
#include "hook/core/metadata.h"
#include "hook/time/cupti.h"

#define SPANS 64u

enum role { ROLE_NONE, ROLE_LAUNCH, ROLE_WAIT };

/* The state of this process.  Several threads change the atomic members. */
static struct {
	bool active;
	_Atomic uint32_t asked;        /* how many want recording: 1 without --capture */
	_Atomic uint32_t delayed;      /* the delay is not over */
	_Atomic uint32_t done;         /* nothing will be recorded any more */
	_Atomic uint64_t range;        /* the open RANGE_CAPTURE, 0: none */
	_Atomic uint64_t opened_ns;    /* when the first part began; 0: none has */
	_Atomic uint64_t looked_ticks; /* when the clock was last asked */
	_Atomic uint64_t launches;     /* recorded ones */
	_Atomic uint32_t launched;     /* since the last wait */
	_Atomic uint32_t steps;        /* that are over */
	_Atomic uint64_t spans[SPANS];
	uint8_t role[FN_COUNT];
} capture;

static _Atomic uint32_t closed_word; /* what wrappers see while nothing is recorded */

static bool is_open(void)
{
	return load_acquire(&capture.asked) && !load_acquire(&capture.delayed) &&
	       !load_acquire(&capture.done);
}

/* Whether calls have to be looked at to see the next part begin. */
static bool is_watching(void)
{
	return !load_acquire(&capture.done) &&
	       (load_acquire(&capture.delayed) || config_get()->capture.last_step);
}

static void begin_range(void)
{
	uint64_t none = 0;
	if (load_acquire(&capture.range))
		return;
	const uint64_t id = own_range_begin(RANGE_CAPTURE, "capture");
	if (id && !replace_if(&capture.range, &none, id, acq_rel, acquire))
		own_range_end(id); /* another was first */
}

static void end_range(void)
{
	own_range_end(atomic_exchange_explicit(&capture.range, 0, memory_order_acq_rel));
}

/* If CUPTI has windows of its own, it is on in those alone. */
static void pause_times(bool pause)
{
	if (!config_get()->reconstruct)
		cupti_pause(pause);
}

static void open_part(void)
{
	uint64_t never = 0;
	replace_if(&capture.opened_ns, &never, monotonic_ns(), relaxed, relaxed);
	pause_times(false);
	begin_range();
	atomic_fetch_and_explicit(&hook_hot.listen, ~(uint32_t)LISTEN_CLOSED, memory_order_relaxed);
	process_divert(NULL);
}

static void close_part(void)
{
	store_relaxed(&closed_word, is_watching() ? CONTROL_COUNT : 0);
	process_divert(&closed_word);
	atomic_fetch_or_explicit(&hook_hot.listen, LISTEN_CLOSED, memory_order_relaxed);
	end_range();
	pause_times(true);
}

/* Until what was done is what is wanted: another thread may have changed its mind meanwhile. */
static void settle(void)
{
	bool open;
	do {
		open = is_open();
		if (open)
			open_part();
		else
			close_part();
	} while (open != is_open());
}

static void ask(bool more)
{
	atomic_fetch_add_explicit(&capture.asked, more ? 1u : -1u, memory_order_acq_rel);
	settle();
}

static void end_all(void)
{
	if (!atomic_exchange_explicit(&capture.done, 1, memory_order_acq_rel))
		settle();
}

#define LOOK_TICKS (1u << 16) /* some tens of microseconds: so late a part may begin or end … */
#define LOOK_NS    10000000u  /* … where it is asked for in longer times */

static bool is_long(uint64_t ns)
{
	return !ns || ns >= LOOK_NS;
}

/* A call of the clock that tells nanoseconds costs several of the other. */
static bool has_looked(const struct config_capture *c)
{
	const uint64_t now = clock_now();
	if (now - load_relaxed(&capture.looked_ticks) < LOOK_TICKS && is_long(c->delay_ns) &&
		is_long(c->duration_ns))
		return true;
	store_relaxed(&capture.looked_ticks, now);
	return false;
}

static void look_at_clock(const struct config_capture *c)
{
	const uint64_t now = monotonic_ns();
	if (load_acquire(&capture.delayed) &&
		now - hook_recorder.header->start.mono_ns >= c->delay_ns &&
		atomic_exchange_explicit(&capture.delayed, 0, memory_order_acq_rel))
		settle();
	const uint64_t opened = load_relaxed(&capture.opened_ns);
	/* If the delay ended just now, the part began after `now`. */
	if (c->duration_ns && opened && now > opened && now - opened >= c->duration_ns)
		end_all();
}

/* A step is what was launched until a call waited for it. */
static void end_step(const struct config_capture *c)
{
	if (!atomic_exchange_explicit(&capture.launched, 0, memory_order_acq_rel))
		return;
	const uint32_t over =
		atomic_fetch_add_explicit(&capture.steps, 1, memory_order_acq_rel) + 1;
	if (over + 1 == c->first_step)
		ask(true);
	else if (over == c->last_step)
		end_all();
}

static void count_launch(const struct config_capture *c)
{
	store_release(&capture.launched, 1);
	if (c->launches && is_open() &&
		(atomic_fetch_add_explicit(&capture.launches, 1, memory_order_acq_rel) + 1) >=
			c->launches)
		end_all();
}

void capture_saw(uint32_t fn, int result, uint32_t flags)
{
	const struct config_capture *c = &config_get()->capture;
	const uint8_t role = fn < FN_COUNT ? capture.role[fn] : ROLE_NONE;
	if ((c->delay_ns || c->duration_ns) && !has_looked(c))
		look_at_clock(c);
	if (result)
		return;
	if (role == ROLE_LAUNCH && !(flags & RECORD_CAPTURED))
		count_launch(c);
	else if (role == ROLE_WAIT && c->last_step)
		end_step(c);
}

static void ask_by_profiler(bool on)
{
	if (!capture.active || !config_get()->capture.profiler)
		return;
	store_release(&capture.asked, on);
	settle();
}

void after_cuProfilerStart(int result)
{
	ask_by_profiler(true);
}

void after_cuProfilerStop(int result)
{
	ask_by_profiler(false);
}

/* The range of this thread for which recording is on.  Whose it is: a forked child has its parent's
 * thread. */
static __thread struct {
	uint64_t identity; /* of the process; 0: there is none */
	const void *domain;
	uint32_t inner; /* ranges of the same domain that were pushed since, and not popped */
} pushed __attribute__((tls_model("initial-exec")));

bool capture_range_is(const char *text, size_t bytes)
{
	static const char sequence[] = ", seq = ", number[] = ", op_id = ";
	const char *name = config_get()->capture.range;
	const size_t n = strlen(name);
	if (bytes < n || memcmp(name, text, n) != 0)
		return false;
	const char *rest = text + n;
	bytes -= n;
	return !bytes ||
	       (bytes >= sizeof sequence - 1 && !memcmp(rest, sequence, sizeof sequence - 1)) ||
	       (bytes >= sizeof number - 1 && !memcmp(rest, number, sizeof number - 1));
}

void capture_range_push(const void *domain, bool named)
{
	if (pushed.identity && pushed.identity == hook_recorder.identity) {
		pushed.inner += pushed.domain == domain;
		return;
	}
	if (!named || !capture.active)
		return;
	pushed.identity = hook_recorder.identity;
	pushed.domain = domain;
	pushed.inner = 0;
	ask(true);
}

void capture_range_pop(const void *domain)
{
	if (!pushed.identity || pushed.identity != hook_recorder.identity ||
		pushed.domain != domain)
		return;
	if (pushed.inner) {
		pushed.inner--;
		return;
	}
	pushed.identity = 0;
	ask(false);
}

void capture_span_begin(void)
{
	if (capture.active)
		ask(true);
}

void capture_span_began(uint64_t span)
{
	for (uint32_t i = 0; span && capture.active && i < SPANS; i++) {
		uint64_t none = 0;
		if (replace_if(&capture.spans[i], &none, span, acq_rel, acquire))
			return;
	}
	if (capture.active)
		ask(false); /* nobody would know its end */
}

void capture_span_ended(uint64_t span)
{
	for (uint32_t i = 0; span && capture.active && i < SPANS; i++) {
		uint64_t seen = span;
		if (replace_if(&capture.spans[i], &seen, 0, acq_rel, acquire)) {
			ask(false);
			return;
		}
	}
}

static enum role role_of(const struct schema_fn *fn)
{
	return schema_launches(fn) ? ROLE_LAUNCH : schema_waits(fn) ? ROLE_WAIT : ROLE_NONE;
}

/* Finds each function's role, by the tables; a forked child has its parent's. */
static void find_roles(void)
{
	static bool known;
	struct schema schema;
	const size_t need = schema_need(schema_text, schema_text_bytes);
	const long at = known ? -1
			      : sys(mmap, NULL, need, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (known || sys_failed(at))
		return;
	struct arena arena = { .base = (char *)at, .size = need };
	known = schema_parse(&schema, &arena, schema_text, schema_text_bytes) == 0;
	for (uint32_t fn = 0; known && fn < FN_COUNT; fn++) {
		const struct schema_fn *of = schema_find(&schema, fn);
		capture.role[fn] = of ? (uint8_t)role_of(of) : ROLE_NONE;
	}
	sys(munmap, at, need);
}

static bool is_asked(const struct config_capture *c)
{
	return c->profiler || *c->range || c->last_step || c->delay_ns || c->duration_ns ||
	       c->launches;
}

void capture_start(void)
{
	const struct config_capture *c = &config_get()->capture;
	if (!config_get()->records || !hook_recorder.header || !is_asked(c))
		return;
	find_roles();
	store_relaxed(&capture.asked, !c->profiler && !*c->range && c->first_step <= 1);
	store_relaxed(&capture.delayed, c->delay_ns > 0);
	capture.active = true;
	atomic_fetch_or_explicit(&hook_recorder.header->optional, FEATURE_CAPTURE | FEATURE_DEVICE,
		memory_order_relaxed);
	if (c->delay_ns || c->duration_ns || c->launches || c->last_step)
		atomic_fetch_or_explicit(&hook_hot.listen, LISTEN_CAPTURE, memory_order_relaxed);
	if (load_relaxed(&capture.delayed))
		look_at_clock(c);
	settle();
}

void capture_forget(void)
{
	capture.active = false;
	store_relaxed(&capture.done, 0);
	store_relaxed(&capture.launched, 0);
	store_relaxed(&capture.steps, 0);
	store_relaxed(&capture.range, 0);
	store_relaxed(&capture.opened_ns, 0);
	store_relaxed(&capture.launches, 0);
	memset(capture.spans, 0, sizeof capture.spans);
	process_divert(NULL);
}
