/* Tries whether best effort should wait in its calls or on the device. */
#include "share/wait_place.h"

#define MS          1000000u
#define FIRST_NS    (1500ull * MS) /* the budget has settled by then */
#define TURN_NS     (350ull * MS)
#define SETTLES_NS  (70ull * MS) /* at the begin of a turn, which are not counted */
#define TURNS       4u
#define AGAIN_NS    (30000ull * MS)
#define GIVEN_UP_NS (5000ull * MS) /* that requests have been quick enough */
#define BETTER      1.06
#define FEWEST      200e-9 /* launches a ns: of fewer nothing is told */

static void begin_turn(struct wait_place *a, uint64_t now)
{
	a->turn++;
	a->holds = a->turn % 2 == 0;
	a->counts_ns = 0;
	a->due_ns = now + TURN_NS;
}

static void choose(struct wait_place *a, uint64_t now)
{
	const double calls = a->rate[0] * (a->chosen ? BETTER : 1),
		     device = a->rate[1] * (a->chosen ? 1 : 1 / BETTER);
	a->holds = a->chosen = a->rate[0] > FEWEST && device > calls;
	a->turn = 0;
	a->rate[0] = a->rate[1] = 0;
	a->due_ns = now + AGAIN_NS;
}

static void end_turn(struct wait_place *a, uint64_t now, uint64_t launches)
{
	if (a->counts_ns && now > a->counts_ns)
		a->rate[a->holds] += (double)(launches - a->launches_then) /
				     (double)(now - a->counts_ns) / (TURNS / 2);
	if (a->turn == TURNS)
		choose(a, now);
	else
		begin_turn(a, now);
}

void wait_place_step(struct wait_place *a, uint64_t now_ns, uint64_t launches, bool can)
{
	if (!can || launches < a->launches_then) {
		*a = (struct wait_place){ 0 };
		return;
	}
	if (!a->due_ns)
		a->due_ns = now_ns + FIRST_NS;
	if (a->turn && !a->counts_ns && now_ns + TURN_NS - SETTLES_NS >= a->due_ns) {
		a->counts_ns = now_ns;
		a->launches_then = launches;
	}
	if (now_ns < a->due_ns)
		return;
	if (a->turn)
		end_turn(a, now_ns, launches);
	else
		begin_turn(a, now_ns);
}

void wait_place_give_up(struct wait_place *a, uint64_t now_ns)
{
	*a = (struct wait_place){ .due_ns = now_ns + GIVEN_UP_NS };
}
