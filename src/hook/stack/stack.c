/* Taking the stack of a call: see stack.h. */
#include "hook/stack/stack.h"

#include <stdatomic.h>
#include <string.h>

#include "base/atomic.h"
#include "base/cpu.h"
#include "base/expect.h"
#include "hook/core/config.h"
#include "hook/core/process.h"
#include "hook/stack/pace.h"
#include "record/sandbox.h"

#define PAGE      4096u
#define REGISTERS 8u /* of enum stack_word */

static struct stack_options wanted_stacks; /* control 0: nobody has asked */

/* Calls of this thread that go by before the next one is taken. */
static __thread uint32_t left __attribute__((tls_model("initial-exec")));

static bool is_turn(void)
{
	const uint32_t each = wanted_stacks.each;
	if (each <= 1)
		return true;
	const bool now = !left;
	left = now ? each - 1 : left - 1;
	return now;
}

/* How much of the stack is to be kept; *ret_own: all of it is certainly there. */
static uint32_t piece_bytes(uintptr_t sp, bool *ret_own)
{
	const uint32_t most = wanted_stacks.bytes;
	uintptr_t end;
	*ret_own = mappings_main_stack(sp, &end);
	end = *ret_own ? end : cpu_thread_end();
	return end > sp && end - sp < most ? (uint32_t)((end - sp) / 8 * 8) : most;
}

/* If the kernel does not say what is mapped, only the page at hand is. */
static uint32_t copy_other(void *to, uintptr_t sp, uint32_t bytes)
{
	const uint32_t got = read_mapped(to, sp, bytes);
	const uint32_t page = PAGE - (uint32_t)(sp % PAGE);
	if (got)
		return got / 8 * 8;
	memcpy(to, (const void *)sp, page < bytes ? page : bytes);
	return page < bytes ? page : bytes;
}

static void lose(void)
{
	add_relaxed(&hook_recorder.header->lost_stacks, 1);
}

/* Fills the words behind the registers: frames of Python, then the stack.  Nothing is read back: a
 * handler that forks leaves the child with zeros in the place of the chunk.  */
static void fill(struct record *s, uint32_t words, uintptr_t sp, uint32_t bytes, bool own)
{
	const uint32_t most = frames_most();
	uint64_t *const python = s->arg + STACK_WORDS;
	bool more = false;
	const uint32_t frames = most ? frames_read(python, most, &more) : 0;
	s->arg[STACK_COUNTS] = frames | (more ? STACK_PYTHON_MORE : 0) | CPU_STACK;
	char *const to = (char *)(python + frames);
	if (own)
		memcpy(to, (const void *)sp, bytes);
	const uint32_t kept = own ? bytes : copy_other(to, sp, bytes);
	const size_t room = words * 8u - (size_t)(to - (char *)s);
	s->aux = kept;
	if (expect_inside(kept <= room, "a piece has its room"))
		memset(to + kept, 0, room - kept);
}

/* Whether the call is inside another of this thread, of the runtime mostly, whose time is not over.
 */
static bool is_inside(void)
{
	const struct thread_account *a = hook_self.account;
	return a && (int64_t)(a->entered - a->returned) > 1;
}

/* A call inside another leaves it to the next of those (stack_look()), unless that has not come for
 * long: one that was left by longjmp() never ends, as far as we see. */
static void look_behind(uint64_t ticks)
{
	const uint64_t later = is_inside() ? REST_LONG : 0;
	if (ticks > later)
		mappings_look(ticks - later, false);
}

__attribute__((noinline)) void stack_take(enum fn fn, const struct record *call)
{
	struct recorder *r = &hook_recorder;
	uint64_t at[REGISTERS];
	bool own;
	if (!r->header || !wanted_stacks.control || !is_turn())
		return;
	look_behind(call->ticks);
	cpu_registers(at);
	const uintptr_t sp = at[STACK_SP];
	const uint32_t bytes = piece_bytes(sp, &own);
	if ((!own || frames_most()) && sandbox_is_closed(r->header)) {
		lose();
		return;
	}
	const uint32_t words = RECORD_WORDS + STACK_WORDS + frames_most() + (bytes + 7) / 8;
	struct record *s = writer_reserve(r, &hook_stacks, words);
	if (!s)
		return;
	s->ticks = call->ticks;
	s->dur = call->dur;
	s->words = (uint16_t)words;
	s->result = call->result;
	s->flags = call->flags & RECORD_LONG;
	memcpy(s->arg, at, sizeof at);
	fill(s, words, sp, bytes, own);
	record_commit(s, (uint16_t)fn);
	writer_unmark(&hook_stacks);
}

uint64_t stack_look(uint64_t ticks)
{
	mappings_look(ticks, false);
	return clock_now();
}

void stack_start(void)
{
	const struct stack_options *o = &config_get()->stacks;
	if (!hook_recorder.header || !o->control)
		return;
	wanted_stacks = *o;
	mappings_look(0, true);
}

void stack_forget(void)
{
	wanted_stacks = (struct stack_options){ 0 };
	left = 0;
	mappings_forget();
	frames_forget();
}

/* Looks at libraries that were loaded since the last look. */
void stack_unloaded(void)
{
	if (wanted_stacks.control && hook_recorder.header)
		mappings_look(0, true);
}
