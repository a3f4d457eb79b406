/* The tables' memory: how much, empty, attached, sealed.  See tables.h. */
#include "base/atomic.h"
#include "predict/predict.h"
#include "predict/tables.h"

#include <errno.h>

#include "base/check.h"
#include "base/crc.h"
#include "predict/predictor.h"
#include "predict/score.h"

#define LAUNCHES_MOST (1u << 20)
#define KERNELS_MOST  (1u << 16)

static bool power_of_two(uint32_t n, uint32_t most)
{
	return n && !(n & (n - 1)) && n <= most;
}

size_t predict_bytes(const struct predict_sizes *sizes)
{
	if (!power_of_two(sizes->launches, LAUNCHES_MOST) || sizes->launches < WINDOW ||
		!power_of_two(sizes->kernels, KERNELS_MOST) || sizes->kernels < WINDOW)
		return 0;
	return sizeof(struct predict_tables) + sizes->launches * sizeof(struct entry) +
	       sizes->kernels * sizeof(struct kernel_slot) +
	       sibling_slots(sizes->kernels) * sizeof(struct sibling_slot) +
	       sizeof(struct sibling_scratch);
}

static int view(struct predict *p, struct predict_tables *t)
{
	if (!expect_inside((char *)(tables_scratch(t) + 1) == (char *)t + t->bytes,
		    "the parts of the tables are as long as the whole"))
		return -EINVAL;
	p->tables = t;
	p->mask = t->launches - 1;
	store_relaxed(&p->model, NULL);
	return 0;
}

int predict_init(struct predict *p, void *memory, size_t bytes, const struct predict_sizes *sizes,
	const struct predict_device *device)
{
	const size_t want = predict_bytes(sizes);
	if (!want || bytes < want || (uintptr_t)memory % 64)
		return -EINVAL;
	memset(memory, 0, want);
	struct predict_tables *t = memory;
	t->magic = TABLES_MAGIC;
	t->bytes = want;
	t->launches = sizes->launches;
	t->kernels = sizes->kernels;
	t->device = *device;
	t->hot.slower[0] = t->hot.slower[1] = 1;
	score_init(t);
	return view(p, t);
}

static uint32_t checksum(const struct predict_tables *t)
{
	const size_t from = offsetof(struct predict_tables, check) + sizeof t->check;
	return crc32c((const char *)t + from, t->bytes - from);
}

/* The same silicon, and as much of it. */
static bool same_kind(const struct predict_device *a, const struct predict_device *b)
{
	return a->cc == b->cc && a->sms == b->sms && a->dram_bytes_ns == b->dram_bytes_ns;
}

static bool same_uuid(const struct predict_device *a, const struct predict_device *b)
{
	static const uint8_t unknown[16];
	const bool known = memcmp(a->uuid, unknown, 16) && memcmp(b->uuid, unknown, 16);
	return !known || !memcmp(a->uuid, b->uuid, 16);
}

/* Checks every value that serves as a place or a count: whoever makes a file can make its checksum,
 * too. */
static bool in_bounds(struct predict_tables *t)
{
	const struct log_ratio_ring *rings = &t->log_ratios[0][0];
	const struct kernel_slot *slots = tables_slots(t);
	for (size_t i = 0; i < FAMILIES * KNOWN_COSTS; i++)
		if (rings[i].n > UINT32_MAX / 2)
			return false;
	for (uint32_t i = 0; i < t->kernels; i++)
		if (slots[i].head.shapes > SHAPES)
			return false;
	for (uint32_t i = 0; i < tables_sibling_slots(t); i++) {
		const struct sibling_head *h = &tables_siblings(t)[i].head;
		if (h->shapes >= SIBLING_SHAPES + SIBLING_WAITING || h->fitted > SIBLING_SHAPES ||
			h->fitted > h->shapes)
			return false;
	}
	return true;
}

int predict_attach(struct predict *p, void *memory, size_t bytes, const struct predict_device *d)
{
	struct predict_tables *t = memory;
	if ((uintptr_t)memory % 64 || bytes < sizeof *t || t->magic != TABLES_MAGIC)
		return -EINVAL;
	const size_t want = predict_bytes(&(struct predict_sizes){ t->launches, t->kernels });
	if (!want || t->bytes != want || bytes < want)
		return -EINVAL;
	if ((t->sealed && t->check != checksum(t)) || !in_bounds(t))
		return -EBADMSG;
	if (d && !same_kind(d, &t->device))
		return -ENODEV;
	if (d && !same_uuid(d, &t->device))
		return -EXDEV;
	if (d)
		t->device = *d;
	return view(p, t);
}

/* Scores say how this device repeats itself, and slowdowns what it did last. */
static void forget_scores(struct predict_tables *t)
{
	memset(&t->hot, 0, sizeof t->hot);
	memset(t->scores, 0, sizeof t->scores);
	memset(t->slowdown, 0, sizeof t->slowdown);
	t->hot.slower[0] = t->hot.slower[1] = 1;
	score_init(t);
}

static void transfer_slot(struct kernel_slot *s)
{
	for (uint32_t i = 0; i < s->head.shapes && i < SHAPES; i++)
		s->shape[i].n = 1;
}

void predict_transfer(struct predict *p, const struct predict_device *d)
{
	struct predict_tables *t = p->tables;
	if (!expect_inside(p->mask == t->launches - 1, "launches are found in the whole table"))
		return;
	t->sealed = 0;
	t->device = *d;
	forget_scores(t);
	for (uint32_t i = 0; i < t->launches; i++)
		history_transfer(&tables_entries(t)[i]);
	for (uint32_t i = 0; i < t->kernels; i++)
		transfer_slot(&tables_slots(t)[i]);
	for (uint32_t i = 0; i < tables_sibling_slots(t); i++)
		for (uint32_t j = 0; j < tables_siblings(t)[i].head.shapes; j++)
			tables_siblings(t)[i].shape[j].n = 1;
}

void predict_seal(struct predict *p)
{
	const struct predict_sizes sizes = { p->tables->launches, p->tables->kernels };
	if (!expect_inside(p->tables->bytes == predict_bytes(&sizes), "tables stay as large"))
		return;
	p->tables->check = checksum(p->tables);
	p->tables->sealed = 1;
}
