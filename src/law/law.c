/*
 * Moves work from submission to its end. law_advance() goes from one date to the next. At each date
 * it ends work, chooses whose turn it is, and places blocks.
 */
#include "law/law.h"
#include "law/state.h"

#include <errno.h>
#include <string.h>

enum { MAX_PRIORITY = 8, CLIENT_WEIGHT = 32, PER_SM_EXACT = 64 };

size_t law_size(void)
{
	return sizeof(struct law);
}

uint64_t law_now(const struct law *law)
{
	return law->now;
}

struct law_totals law_totals(const struct law *law)
{
	return law->totals;
}

static void list_push(struct law *law, struct list *list, uint32_t work)
{
	law->works[work].next = NONE;
	if (list->first == NONE)
		list->first = work;
	else
		law->works[list->last].next = work;
	list->last = work;
}

static uint32_t list_pop(struct law *law, struct list *list)
{
	const uint32_t work = list->first;
	if (work != NONE)
		list->first = law->works[work].next;
	return work;
}

static void list_drop(struct law *law, struct list *list, unsigned client)
{
	struct list kept = { NONE, NONE };
	uint32_t work;
	while ((work = list_pop(law, list)) != NONE)
		if (law->works[work].client != client)
			list_push(law, &kept, work);
	*list = kept;
}

int law_reset(struct law *law, const struct law_device *device)
{
	if (!device->sms || device->sms > LAW_SMS || device->sharing > LAW_MPS ||
		(device->sharing == LAW_SLICES && !device->slice_ns))
		return -EINVAL;
	memset(law, 0, offsetof(struct law, sets));
	law->device = *device;
	law->sm_next = LAW_NEVER;
	law->loaded = NONE;
	law->free_works = law->free_edges = NONE;
	law->ended = (struct list){ NONE, NONE };
	for (unsigned i = 0; i < LAW_ENGINES; i++)
		law->queue[i] = (struct list){ NONE, NONE };
	for (uint32_t i = 0; i < LAW_SETS; i++)
		law->sets[i].next = i + 1 < LAW_SETS ? i + 1 : NONE;
	const unsigned fields = device->sharing == LAW_MPS ? 1 : LAW_CLIENTS;
	for (unsigned i = 0; i < fields; i++)
		field_init(law, &law->fields[i]);
	return 0;
}

int law_client_open(struct law *law, unsigned client, int priority, unsigned sms)
{
	if (client >= LAW_CLIENTS || law->clients[client].open || sms > law->device.sms ||
		priority < -MAX_PRIORITY || priority >= MAX_PRIORITY)
		return -EINVAL;
	law->clients[client] = (struct client){
		.open = true,
		.priority = (int8_t)priority,
		.sms = (uint16_t)(sms ? sms : law->device.sms),
		.done = { NONE, NONE },
	};
	return 0;
}

/* The heap of dates. */

static bool sooner(const struct timer *a, const struct timer *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

static void timer_push(struct law *law, uint64_t at_ns, uint32_t work)
{
	const struct timer new = { at_ns, law->next_seq++, work };
	uint32_t i = law->timer_count++;
	for (; i && sooner(&new, &law->timers[(i - 1) / 2]); i = (i - 1) / 2)
		law->timers[i] = law->timers[(i - 1) / 2];
	law->timers[i] = new;
}

static uint32_t timer_pop(struct law *law)
{
	const uint32_t work = law->timers[0].work;
	const struct timer moved = law->timers[--law->timer_count];
	uint32_t i = 0, child;
	while ((child = 2 * i + 1) < law->timer_count) {
		if (child + 1 < law->timer_count &&
			sooner(&law->timers[child + 1], &law->timers[child]))
			child++;
		if (!sooner(&law->timers[child], &moved))
			break;
		law->timers[i] = law->timers[child];
		i = child;
	}
	law->timers[i] = moved;
	return work;
}

static void timers_drop(struct law *law, unsigned client)
{
	const uint32_t count = law->timer_count;
	law->timer_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct timer t = law->timers[i];
		if (law->works[t.work].client != client)
			timer_push(law, t.at_ns, t.work);
	}
}

/* Pools. */

static uint32_t work_new(struct law *law)
{
	const uint32_t index = law->free_works;
	if (index == NONE) {
		if (law->work_count == LAW_WORKS)
			return NONE;
		law->works[law->work_count] = (struct work){ 0 };
		return law->work_count++;
	}
	law->free_works = law->works[index].next;
	return index;
}

static void work_free(struct law *law, uint32_t index)
{
	struct work *w = &law->works[index];
	w->generation++;
	w->state = FREE;
	w->next = law->free_works;
	law->free_works = index;
}

static uint32_t edge_new(struct law *law)
{
	const uint32_t index = law->free_edges;
	if (index == NONE)
		return law->edge_count < LAW_EDGES ? law->edge_count++ : NONE;
	law->free_edges = law->edges[index].next;
	return index;
}

static void edge_free(struct law *law, uint32_t index)
{
	law->edges[index].next = law->free_edges;
	law->free_edges = index;
}

static uint64_t id_of(const struct law *law, uint32_t index)
{
	return (uint64_t)law->works[index].generation << 32 | (index + 1);
}

/* The work with that id if it has not ended; NONE. */
static uint32_t find(const struct law *law, uint64_t id)
{
	const uint32_t index = (uint32_t)id - 1;
	if (!id || index >= law->work_count || law->works[index].generation != id >> 32 ||
		law->works[index].state == DONE || law->works[index].state == FREE)
		return NONE;
	return index;
}

/* Its turn has come: nothing that it waits for is left. */

static void want(struct law *law, struct work *w)
{
	if (w->kind == LAW_KERNEL && !law->clients[w->client].kernels++)
		law->wanting++;
}

static void engine_start(struct law *law, unsigned engine)
{
	if (law->engine_busy[engine])
		return;
	const uint32_t index = list_pop(law, &law->queue[engine]);
	if (index == NONE)
		return;
	struct work *w = &law->works[index];
	law->engine_busy[engine] = true;
	w->state = RUNNING;
	w->start_ns = law->now;
	timer_push(law, law->now + w->units, index);
}

static void ask(struct law *law, uint32_t index)
{
	struct work *w = &law->works[index];
	if (w->kind == LAW_MARK) {
		work_ended(law, index);
	} else if (w->kind == LAW_KERNEL) {
		field_ready(law, field_of(law, w->client), index);
	} else {
		w->state = READY;
		list_push(law, &law->queue[w->engine], index);
		engine_start(law, w->engine);
	}
}

static void due(struct law *law, uint32_t index)
{
	struct work *w = &law->works[index];
	want(law, w);
	if (!w->lead_ns) {
		ask(law, index);
		return;
	}
	w->state = LEAD;
	timer_push(law, law->now + w->lead_ns, index);
}

void work_ended(struct law *law, uint32_t index)
{
	struct work *w = &law->works[index];
	w->end_ns = law->now;
	if (w->start_ns == LAW_NEVER)
		w->start_ns = law->now;
	if (w->kind == LAW_KERNEL && !--law->clients[w->client].kernels)
		law->wanting--;
	law->totals.ended++;
	list_push(law, &law->ended, index);
}

/* Tells those that waited; they may end at once, too, and come behind it in the list. */
static void settle_ended(struct law *law)
{
	uint32_t index;
	while ((index = list_pop(law, &law->ended)) != NONE) {
		struct work *w = &law->works[index];
		for (uint32_t e = w->edges, next; e != NONE; e = next) {
			const uint32_t to = law->edges[e].to;
			next = law->edges[e].next;
			edge_free(law, e);
			if (!--law->works[to].waits)
				due(law, to);
		}
		w->edges = NONE;
		w->state = DONE;
		list_push(law, &law->clients[w->client].done, index);
	}
}

static void settle(struct law *law)
{
	settle_ended(law);
	turn_take(law);
	struct field *f = turn_field(law);
	if (f && f->dirty)
		field_place(law, f);
	law->sm_next = f ? field_next(law, f) : LAW_NEVER;
}

static void timer_due(struct law *law)
{
	const uint32_t index = timer_pop(law);
	struct work *w = &law->works[index];
	if (w->state == LEAD) {
		ask(law, index);
		return;
	}
	law->engine_busy[w->engine] = false;
	work_ended(law, index);
	engine_start(law, w->engine);
}

uint64_t law_next(const struct law *law)
{
	uint64_t next = turn_next(law);
	next = MIN(law->sm_next, next);
	if (law->timer_count && law->timers[0].at_ns < next)
		next = law->timers[0].at_ns;
	return next;
}

void law_advance(struct law *law, uint64_t t)
{
	uint64_t next;
	while ((next = law_next(law)) <= t && next != LAW_NEVER) {
		law->now = next;
		while (law->timer_count && law->timers[0].at_ns <= next)
			timer_due(law);
		if (law->sm_next <= next)
			field_finish(law, turn_field(law));
		settle(law);
	}
	law->now = MAX(t, law->now);
}

/* Handing over. */

static unsigned fit(const struct law_work *p)
{
	return MIN(p->per_sm, MIN(LAW_SM_BLOCKS, LAW_SM_WARPS / p->warps));
}

static bool sane_kernel(const struct law *law, const struct law_work *p)
{
	const unsigned end = p->end_sm ? p->end_sm : law->device.sms;
	return p->blocks && p->warps && p->warps <= LAW_SM_WARPS && p->per_sm &&
	       p->first_sm < end && end <= law->device.sms && p->block_ns <= LAW_MAX_NS &&
	       !p->block_ns == !!p->alone_ns && p->priority >= -MAX_PRIORITY &&
	       p->priority < MAX_PRIORITY && p->blocks <= (uint64_t)1 << 48;
}

static bool sane(const struct law *law, const struct law_work *p)
{
	if (p->client >= LAW_CLIENTS || !law->clients[p->client].open || p->lead_ns > LAW_MAX_NS ||
		p->alone_ns > LAW_MAX_NS || p->after_count > LAW_MAX_AFTER)
		return false;
	if (p->kind == LAW_KERNEL)
		return sane_kernel(law, p);
	return p->kind == LAW_MARK || (p->kind == LAW_COPY && p->engine < LAW_ENGINES);
}

/*
 * Kernels of very many blocks get fewer and longer ones instead: as many times more as there are
 * more than PER_SM_EXACT a SM.
 */
static uint64_t merged_blocks(const struct law *law, uint64_t blocks)
{
	const uint64_t exact = (uint64_t)law->device.sms * PER_SM_EXACT;
	const uint64_t each = (blocks + exact - 1) / exact;
	return (blocks + each - 1) / each;
}

/* The work of each of `blocks`, so that all take alone_ns on the whole device. */
static uint64_t units_of(struct law *law, const struct law_work *p, uint64_t blocks)
{
	if (p->block_ns)
		return (uint64_t)((__uint128_t)p->block_ns * ONE * p->blocks / blocks);
	const unsigned most = (unsigned)((blocks + law->device.sms - 1) / law->device.sms);
	const uint64_t probe = sm_probe(law, most, p->warps, fit(p));
	const uint64_t units = (uint64_t)((__uint128_t)p->alone_ns * ONE * PROBE_NS / probe);
	return units ? units : 1;
}

static void fill_kernel(struct law *law, const struct law_work *p, struct work *w)
{
	const unsigned most = law->clients[p->client].sms;
	const uint64_t blocks = merged_blocks(law, p->blocks);
	w->first_sm = (uint16_t)p->first_sm;
	w->end_sm = (uint16_t)MIN(p->end_sm ? p->end_sm : law->device.sms, p->first_sm + most);
	if (w->end_sm > law->device.sms)
		w->end_sm = (uint16_t)law->device.sms;
	w->warps = (uint16_t)p->warps;
	w->share = ROOM / fit(p);
	w->left = (uint32_t)blocks;
	w->units = units_of(law, p, blocks);
	law->totals.submitted += w->units * blocks;
	law->totals.waiting += w->units * blocks;
}

static bool wait_for(struct law *law, uint32_t index, uint64_t id)
{
	const uint32_t on = find(law, id);
	if (on == NONE || on == index || law->works[on].client != law->works[index].client)
		return true;
	const uint32_t e = edge_new(law);
	if (e == NONE)
		return false;
	law->edges[e] = (struct edge){ .to = index, .next = law->works[on].edges };
	law->works[on].edges = e;
	law->works[index].waits++;
	return true;
}

/* The place of a stream in the table: its own, or one that nothing is waiting in; NULL when it is
 * full. */
static struct stream *stream_of(struct law *law, unsigned client, uint64_t number)
{
	const uint64_t key = number << 6 | client;
	const uint64_t at = (key * 0x9e3779b97f4a7c15u) >> 40;
	struct stream *vacant = NULL;
	for (unsigned i = 0; i < 64; i++) {
		struct stream *s = &law->streams[(at + i) % LAW_STREAMS];
		if (s->key == key && s->last)
			return s;
		if (!vacant && find(law, s->last) == NONE)
			vacant = s;
	}
	if (vacant)
		*vacant = (struct stream){ .key = key };
	return vacant;
}

/* All that it must wait for, or false where there is no room for that. */
static bool connect(struct law *law, const struct law_work *p, uint32_t index)
{
	if (p->after_count + 1 > LAW_EDGES - law->edge_count && law->free_edges == NONE)
		return false;
	for (size_t i = 0; i < p->after_count; i++)
		if (!wait_for(law, index, p->after[i]))
			return false;
	if (!p->stream)
		return true;
	struct stream *s = stream_of(law, p->client, p->stream);
	if (!s || !wait_for(law, index, s->last))
		return false;
	s->last = id_of(law, index);
	return true;
}

/* Takes back the edges of a work that could not be handed over. */
static void disconnect(struct law *law, uint32_t index)
{
	for (uint32_t i = 0; i < law->work_count; i++) {
		if (law->works[i].state == FREE)
			continue;
		for (uint32_t *link = &law->works[i].edges; *link != NONE;) {
			const uint32_t e = *link;
			if (law->edges[e].to != index) {
				link = &law->edges[e].next;
				continue;
			}
			*link = law->edges[e].next;
			edge_free(law, e);
		}
	}
}

int law_submit(struct law *law, const struct law_work *p, uint64_t *ret_id)
{
	if (!sane(law, p))
		return -EINVAL;
	const uint32_t index = work_new(law);
	if (index == NONE)
		return -EAGAIN;
	struct work *w = &law->works[index];
	*w = (struct work){
		.generation = w->generation,
		.state = WAITING,
		.kind = (uint8_t)p->kind,
		.client = (uint8_t)p->client,
		.engine = (uint8_t)p->engine,
		.priority =
			(int16_t)(law->clients[p->client].priority * CLIENT_WEIGHT + p->priority),
		.edges = NONE,
		.next = NONE,
		.units = p->alone_ns,
		.lead_ns = p->lead_ns,
		.seq = law->next_seq++,
		.tag = p->tag,
		.start_ns = LAW_NEVER,
	};
	if (!connect(law, p, index)) {
		disconnect(law, index);
		work_free(law, index);
		return -EAGAIN;
	}
	if (p->kind == LAW_KERNEL)
		fill_kernel(law, p, w);
	law->totals.works++;
	*ret_id = id_of(law, index);
	if (!w->waits) {
		due(law, index);
		settle(law);
	}
	return 0;
}

bool law_pop(struct law *law, unsigned client, struct law_done *ret_done)
{
	if (client >= LAW_CLIENTS || !law->clients[client].open)
		return false;
	const uint32_t index = list_pop(law, &law->clients[client].done);
	if (index == NONE)
		return false;
	const struct work *w = &law->works[index];
	*ret_done = (struct law_done){
		.id = id_of(law, index),
		.tag = w->tag,
		.start_ns = w->start_ns,
		.end_ns = w->end_ns,
	};
	work_free(law, index);
	return true;
}

/* The end of a client. */

static void drop_work(struct law *law, uint32_t index)
{
	struct work *w = &law->works[index];
	for (uint32_t e = w->edges, next; e != NONE; e = next) {
		next = law->edges[e].next;
		edge_free(law, e);
	}
	if (w->kind == LAW_COPY && w->state == RUNNING)
		law->engine_busy[w->engine] = false;
	if (w->state != DONE)
		law->totals.cancelled++;
	if (w->kind == LAW_KERNEL && w->left) {
		law->totals.lost += w->units * w->left;
		law->totals.waiting -= w->units * w->left;
	}
	work_free(law, index);
}

void law_client_close(struct law *law, unsigned client)
{
	if (client >= LAW_CLIENTS || !law->clients[client].open)
		return;
	field_drop(law, field_of(law, client), client);
	timers_drop(law, client);
	for (unsigned i = 0; i < LAW_ENGINES; i++)
		list_drop(law, &law->queue[i], client);
	for (uint32_t i = 0; i < law->work_count; i++)
		if (law->works[i].state != FREE && law->works[i].client == client)
			drop_work(law, i);
	law->wanting -= law->clients[client].kernels > 0;
	law->clients[client] = (struct client){ 0 };
	turn_drop(law, client);
	for (unsigned i = 0; i < LAW_ENGINES; i++)
		engine_start(law, i);
	settle(law);
}
