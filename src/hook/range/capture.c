/* Opens and closes the part of a run that is recorded. */
#include "hook/range/capture.h"

#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "event/schema.h"
#include "event/schema_text.h"
#include "hook/core/after.h"
#include "hook/core/call.h"
#include "hook/core/own_range.h"
#include "hook/time/cupti.h"

#define SPANS 64u

enum role { ROLE_NONE, ROLE_LAUNCH, ROLE_WAIT };

/* Of this process.  What several threads change is changed atomically. */
static struct {
	bool active;
	uint32_t asked;        /* how many want recording: 1 without --capture */
	uint32_t delayed;      /* the delay is not over */
	uint32_t done;         /* nothing will be recorded any more */
	uint64_t range;        /* the open RANGE_CAPTURE, 0: none */
	uint64_t opened_ns;    /* when the first part began; 0: none has */
	uint64_t looked_ticks; /* when the clock was last asked */
	uint64_t launches;     /* recorded ones */
	uint32_t launched;     /* since the last wait */
	uint32_t steps;        /* that are over */
	uint64_t spans[SPANS];
	uint8_t role[FN_COUNT];
} capture;

static uint32_t closed_word; /* what wrappers see while nothing is recorded */

/* ---- opening and closing ---- */

static bool is_open(void)
{
	return __atomic_load_n(&capture.asked, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&capture.delayed, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&capture.done, __ATOMIC_ACQUIRE);
}

/* Whether calls have to be looked at to see the next part begin. */
static bool is_watching(void)
{
	return !__atomic_load_n(&capture.done, __ATOMIC_ACQUIRE) &&
	       (__atomic_load_n(&capture.delayed, __ATOMIC_ACQUIRE) ||
		       config_get()->capture.last_step);
}

static void begin_range(void)
{
	uint64_t none = 0;
	if (__atomic_load_n(&capture.range, __ATOMIC_ACQUIRE))
		return;
	const uint64_t id = own_range_begin(RANGE_CAPTURE, "capture");
	if (id && !__atomic_compare_exchange_n(
			  &capture.range, &none, id, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		own_range_end(id); /* another was first */
}

static void end_range(void)
{
	own_range_end(__atomic_exchange_n(&capture.range, 0, __ATOMIC_ACQ_REL));
}

/* Where CUPTI has windows of its own, it is on in those alone. */
static void pause_times(bool pause)
{
	if (!config_get()->reconstruct)
		cupti_pause(pause);
}

static void open_part(void)
{
	uint64_t never = 0;
	__atomic_compare_exchange_n(&capture.opened_ns, &never, clock_monotonic(), false,
		__ATOMIC_RELAXED, __ATOMIC_RELAXED);
	pause_times(false);
	begin_range();
	__atomic_fetch_and(&hook_hot.listen, ~(uint32_t)LISTEN_CLOSED, __ATOMIC_RELAXED);
	process_divert(NULL);
}

static void close_part(void)
{
	closed_word = is_watching() ? CONTROL_COUNT : 0;
	process_divert(&closed_word);
	__atomic_fetch_or(&hook_hot.listen, LISTEN_CLOSED, __ATOMIC_RELAXED);
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
	__atomic_fetch_add(&capture.asked, more ? 1u : -1u, __ATOMIC_ACQ_REL);
	settle();
}

static void end_all(void)
{
	if (!__atomic_exchange_n(&capture.done, 1, __ATOMIC_ACQ_REL))
		settle();
}

/* ---- calls ---- */

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
	if (now - __atomic_load_n(&capture.looked_ticks, __ATOMIC_RELAXED) < LOOK_TICKS &&
		is_long(c->delay_ns) && is_long(c->duration_ns))
		return true;
	__atomic_store_n(&capture.looked_ticks, now, __ATOMIC_RELAXED);
	return false;
}

static void look_at_clock(const struct config_capture *c)
{
	const uint64_t now = clock_monotonic();
	if (__atomic_load_n(&capture.delayed, __ATOMIC_ACQUIRE) &&
		now - hook_recorder.header->start.mono_ns >= c->delay_ns &&
		__atomic_exchange_n(&capture.delayed, 0, __ATOMIC_ACQ_REL))
		settle();
	const uint64_t opened = __atomic_load_n(&capture.opened_ns, __ATOMIC_RELAXED);
	/* Where it is the delay that ended just now, the part began after `now`. */
	if (c->duration_ns && opened && now > opened && now - opened >= c->duration_ns)
		end_all();
}

/* A step is what was launched until a call waited for it. */
static void end_step(const struct config_capture *c)
{
	if (!__atomic_exchange_n(&capture.launched, 0, __ATOMIC_ACQ_REL))
		return;
	const uint32_t over = __atomic_add_fetch(&capture.steps, 1, __ATOMIC_ACQ_REL);
	if (over + 1 == c->first_step)
		ask(true);
	else if (over == c->last_step)
		end_all();
}

static void count_launch(const struct config_capture *c)
{
	__atomic_store_n(&capture.launched, 1, __ATOMIC_RELEASE);
	if (c->launches && is_open() &&
		__atomic_add_fetch(&capture.launches, 1, __ATOMIC_ACQ_REL) >= c->launches)
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

void after_cuProfilerStart(int result)
{
	if (!capture.active || !config_get()->capture.profiler)
		return;
	__atomic_store_n(&capture.asked, 1, __ATOMIC_RELEASE);
	settle();
}

void after_cuProfilerStop(int result)
{
	if (!capture.active || !config_get()->capture.profiler)
		return;
	__atomic_store_n(&capture.asked, 0, __ATOMIC_RELEASE);
	settle();
}

/* ---- ranges ---- */

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
		if (__atomic_compare_exchange_n(&capture.spans[i], &none, span, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return;
	}
	if (capture.active)
		ask(false); /* nobody would know its end */
}

void capture_span_ended(uint64_t span)
{
	for (uint32_t i = 0; span && capture.active && i < SPANS; i++) {
		uint64_t seen = span;
		if (__atomic_compare_exchange_n(&capture.spans[i], &seen, 0, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			ask(false);
			return;
		}
	}
}

/* ---- the process ---- */

static enum role role_of(const struct schema_fn *fn)
{
	return schema_launches(fn) ? ROLE_LAUNCH : schema_waits(fn) ? ROLE_WAIT : ROLE_NONE;
}

/* What each function is to us, by the tables; a forked child has its parent's. */
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
	if (config_get()->keep != KEEP_RECORDS || !hook_recorder.header || !is_asked(c))
		return;
	find_roles();
	capture.asked = !c->profiler && !*c->range && c->first_step <= 1;
	capture.delayed = c->delay_ns > 0;
	capture.active = true;
	__atomic_fetch_or(&hook_recorder.header->optional, FEATURE_CAPTURE | FEATURE_DEVICE,
		__ATOMIC_RELAXED);
	if (c->delay_ns || c->duration_ns || c->launches || c->last_step)
		hook_hot.listen |= LISTEN_CAPTURE;
	if (capture.delayed)
		look_at_clock(c);
	settle();
}

void capture_forget(void)
{
	capture.active = false;
	capture.done = capture.launched = capture.steps = 0;
	capture.range = capture.opened_ns = capture.launches = 0;
	memset(capture.spans, 0, sizeof capture.spans);
	process_divert(NULL);
}
