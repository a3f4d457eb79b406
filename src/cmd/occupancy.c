/*
 * weir occupancy shows how many blocks of a kernel an SM holds, the limit, and the next step up and
 * down. predict/occupancy.c has the arithmetic.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/table.h"
#include "cmd/cli/command.h"
#include "cmd/cli/occupancy_csv.h"
#include "cmd/cli/values.h"
#include "predict/occupancy.h"

#define REASON  160
#define SCANNED (OCCUPANCY_THREADS_PER_BLOCK / OCCUPANCY_WARP)

static const struct {
	const char *key, *name;
} knobs[] = {
	[OCCUPANCY_BY_THREADS] = { "threads", "threads" },
	[OCCUPANCY_BY_REGS] = { "registers", "registers" },
	[OCCUPANCY_BY_SMEM] = { "shared", "shared memory" },
};
#define KNOBS (int)(sizeof knobs / sizeof knobs[0])

struct question {
	const struct occupancy_device *device;
	struct occupancy_launch launch;
	bool has_block; /* else every block size is meant */
};

/* As a share of the warps that the SM could hold. */
static const char *percent(struct number *n, const struct occupancy_device *d, uint32_t warps)
{
	snprintf(n->text, sizeof n->text, "%.4g %%", 100.0 * warps / d->warps_per_sm);
	return n->text;
}

/* "1 block", "4 blocks" */
static const char *blocks_text(struct number *n, uint32_t blocks)
{
	snprintf(n->text, sizeof n->text, "%u block%s", blocks, blocks == 1 ? "" : "s");
	return n->text;
}

static void why_refused(
	const struct question *q, const struct occupancy *o, char text[static REASON])
{
	const struct occupancy_device *d = q->device;
	const struct occupancy_launch *l = &q->launch;
	const uint64_t smem = (uint64_t)l->smem_static_bytes + l->smem_dynamic_bytes;
	struct number a, b;
	switch (o->refusal) {
	case OCCUPANCY_RUNS:
	case OCCUPANCY_NO_THREADS:
		snprintf(text, REASON, "a block has at least one thread");
		break;
	case OCCUPANCY_MANY_THREADS:
		snprintf(text, REASON, "a block has at most %d threads, not %s",
			OCCUPANCY_THREADS_PER_BLOCK, number_count(&a, l->threads));
		break;
	case OCCUPANCY_MANY_REGS_PER_THREAD:
		snprintf(text, REASON, "a thread has at most 255 registers, not %s",
			number_count(&a, l->regs));
		break;
	case OCCUPANCY_MANY_REGS_PER_BLOCK:
		snprintf(text, REASON,
			"%u threads with %u registers each need more than the %s registers of an SM",
			l->threads, l->regs, number_count(&a, d->regs_per_sm));
		break;
	case OCCUPANCY_MUCH_DYNAMIC:
	case OCCUPANCY_MUCH_SHARED:
		snprintf(text, REASON, "a block has at most %s bytes of shared memory, not %s",
			number_count(&a, d->smem_optin_bytes), number_count(&b, smem));
		break;
	case OCCUPANCY_MANY_BARRIERS:
		snprintf(text, REASON, "an SM has %u barriers, and a block wants %u",
			d->barriers_per_sm, l->barriers);
		break;
	}
}

static void print_question(const struct question *q)
{
	const struct occupancy_launch *l = &q->launch;
	struct number a;
	printf("compute capability %u.%u: ", q->device->major, q->device->minor);
	if (q->has_block)
		printf("%u threads in a block, ", l->threads);
	printf("%u registers a thread, %s bytes of shared memory a block\n\n", l->regs,
		number_count(&a, (uint64_t)l->smem_static_bytes + l->smem_dynamic_bytes));
}

static void print_limits(const struct occupancy *o)
{
	static const char *const names[OCCUPANCY_LIMITS] = {
		[OCCUPANCY_WARPS] = "warps",
		[OCCUPANCY_BLOCKS] = "block slots",
		[OCCUPANCY_REGISTERS] = "registers",
		[OCCUPANCY_SHARED] = "shared memory",
		[OCCUPANCY_BARRIERS] = "barriers",
	};
	struct number a;
	struct table table = table_of(">enough for|<of");
	for (int i = 0; i < OCCUPANCY_LIMITS; i++) {
		if (o->limit[i] == OCCUPANCY_UNLIMITED)
			continue;
		table_cell(&table, "%s", blocks_text(&a, o->limit[i]));
		table_cell(&table, "%s%s", names[i], o->limiters >> i & 1 ? "   <- the limit" : "");
	}
	table_print(&table, stdout);
}

static void put_cliff(
	struct table *table, const struct question *q, const struct occupancy_cliff *cliff)
{
	struct number value, blocks, share;
	const char *at = number_count(&value, cliff->value);
	if (!cliff->found)
		table_cell(table, "-");
	else if (!cliff->blocks)
		table_cell(table, "%s: does not run", at);
	else
		table_cell(table, "%s: %s, %s", at, blocks_text(&blocks, cliff->blocks),
			percent(&share, q->device, cliff->warps));
}

static void print_cliffs(const struct question *q)
{
	const struct occupancy_launch *l = &q->launch;
	const uint64_t now[] = { l->threads, l->regs,
		(uint64_t)l->smem_static_bytes + l->smem_dynamic_bytes };
	struct number a;
	struct table table =
		table_of("<all else as it is|>now|<more blocks up to|<fewer blocks from");
	for (int k = 0; k < KNOBS; k++) {
		const enum occupancy_knob knob = (enum occupancy_knob)k;
		const struct occupancy_cliff more = occupancy_more(q->device, l, knob);
		const struct occupancy_cliff fewer = occupancy_fewer(q->device, l, knob);
		table_cell(&table, "%s", knobs[k].name);
		table_cell(&table, "%s", number_count(&a, now[k]));
		put_cliff(&table, q, &more);
		put_cliff(&table, q, &fewer);
	}
	putchar('\n');
	table_print(&table, stdout);
}

static void print_answer(const struct question *q, const struct occupancy *o)
{
	struct number blocks, share;
	char reason[REASON];
	print_question(q);
	if (o->blocks) {
		printf("  %s on each SM: %u of %u warps, %s\n\n", blocks_text(&blocks, o->blocks),
			o->warps, q->device->warps_per_sm, percent(&share, q->device, o->warps));
		print_limits(o);
	} else {
		why_refused(q, o, reason);
		printf("  the launch is refused: %s\n", reason);
	}
	print_cliffs(q);
}

/* The answers for 32, 64 ... threads; the most warps among them. */
static uint32_t scan(const struct question *q, struct occupancy answers[static SCANNED])
{
	struct occupancy_launch l = q->launch;
	uint32_t most = 0;
	for (uint32_t i = 0; i < SCANNED; i++) {
		l.threads = (i + 1) * OCCUPANCY_WARP;
		answers[i] = occupancy_of(q->device, &l);
		most = MAX(answers[i].warps, most);
	}
	return most;
}

static void print_scan(const struct question *q)
{
	struct occupancy answers[SCANNED];
	const uint32_t most = scan(q, answers);
	struct number a;
	print_question(q);
	struct table table = table_of(">threads|>blocks|>warps|>occupancy|<limited by");
	for (uint32_t i = 0; i < SCANNED; i++) {
		const struct occupancy *o = &answers[i];
		const uint32_t threads = (i + 1) * OCCUPANCY_WARP;
		const bool here = q->has_block && q->launch.threads <= threads &&
				  q->launch.threads + OCCUPANCY_WARP > threads;
		table_cell(&table, "%u", threads);
		table_cell(&table, "%u", o->blocks);
		table_cell(&table, "%u", o->warps);
		table_cell(&table, "%s", percent(&a, q->device, o->warps));
		table_cell(&table, "%s%s%s", occupancy_word(o),
			most && o->warps == most ? "   best" : "", here ? "   <- asked for" : "");
	}
	table_print(&table, stdout);
}

static void json_answer(struct json *j, const struct question *q, const struct occupancy *o)
{
	json_u64(j, "blocks_per_sm", o->blocks);
	json_u64(j, "warps_per_sm", o->warps);
	json_u64(j, "max_warps_per_sm", q->device->warps_per_sm);
	json_put_real(j, "occupancy", (double)o->warps / q->device->warps_per_sm);
	json_str(j, "limiter", occupancy_word(o));
}

static void json_limits(struct json *j, const struct question *q, const struct occupancy *o)
{
	char reason[REASON];
	json_begin_array(j, "limiters");
	for (int i = 0; i < OCCUPANCY_LIMITS; i++)
		if (o->limiters >> i & 1)
			json_str(j, NULL, occupancy_limit_word((enum occupancy_limit)i));
	json_end_array(j);
	json_begin_object(j, "limits");
	for (int i = 0; i < OCCUPANCY_LIMITS; i++) {
		const char *word = occupancy_limit_word((enum occupancy_limit)i);
		if (!o->blocks || o->limit[i] == OCCUPANCY_UNLIMITED)
			json_put_null(j, word);
		else
			json_u64(j, word, o->limit[i]);
	}
	json_end_object(j);
	json_u64(j, "smem_block_bytes", o->smem_block_bytes);
	if (o->blocks) {
		json_put_null(j, "refusal");
	} else {
		why_refused(q, o, reason);
		json_str(j, "refusal", reason);
	}
}

static void json_cliff(struct json *j, const char *key, const struct question *q,
	const struct occupancy_cliff *cliff)
{
	if (!cliff->found) {
		json_put_null(j, key);
		return;
	}
	json_begin_object(j, key);
	json_u64(j, "value", cliff->value);
	json_u64(j, "blocks_per_sm", cliff->blocks);
	json_put_real(j, "occupancy", (double)cliff->warps / q->device->warps_per_sm);
	json_end_object(j);
}

static void json_cliffs(struct json *j, const struct question *q)
{
	json_begin_object(j, "cliffs");
	for (int k = 0; k < KNOBS; k++) {
		const enum occupancy_knob knob = (enum occupancy_knob)k;
		const struct occupancy_cliff more = occupancy_more(q->device, &q->launch, knob);
		const struct occupancy_cliff fewer = occupancy_fewer(q->device, &q->launch, knob);
		json_begin_object(j, knobs[k].key);
		json_cliff(j, "more", q, &more);
		json_cliff(j, "fewer", q, &fewer);
		json_end_object(j);
	}
	json_end_object(j);
}

static void json_scan(struct json *j, const struct question *q)
{
	struct occupancy answers[SCANNED];
	scan(q, answers);
	json_begin_array(j, "scan");
	for (uint32_t i = 0; i < SCANNED; i++) {
		json_begin_object(j, NULL);
		json_u64(j, "threads_per_block", (i + 1) * OCCUPANCY_WARP);
		json_answer(j, q, &answers[i]);
		json_end_object(j);
	}
	json_end_array(j);
}

static void print_json(const struct question *q, const struct occupancy *o, bool scanned)
{
	const struct occupancy_launch *l = &q->launch;
	char cc[16];
	struct json j;
	snprintf(cc, sizeof cc, "%u.%u", q->device->major, q->device->minor);
	json_begin_document(&j, stdout);
	json_str(&j, "cc", cc);
	if (q->has_block)
		json_u64(&j, "threads_per_block", l->threads);
	json_u64(&j, "regs_per_thread", l->regs);
	json_u64(&j, "smem_static_bytes", l->smem_static_bytes);
	json_u64(&j, "smem_dynamic_bytes", l->smem_dynamic_bytes);
	json_u64(&j, "barriers", l->barriers);
	json_u64(&j, "carveout_pct", l->carveout_pct);
	if (q->has_block) {
		json_answer(&j, q, o);
		json_limits(&j, q, o);
		json_cliffs(&j, q);
	}
	if (scanned)
		json_scan(&j, q);
	json_end_document(&j);
}

/* A number from the option's value; more than any limit is as much as the largest. */
static int take_count(const struct options *o, const char *name, uint32_t *ret_value)
{
	uint64_t value = 0;
	if (!opt_str(o, name))
		return complain(
			EXIT_USAGE, "--%s is missing. `weir occupancy --help` says more", name);
	const int code = take_size(o, name, 0, UINT64_MAX, &value);
	*ret_value = (uint32_t)MIN(value, UINT32_MAX);
	return code;
}

static int take_device(const struct options *o, const struct occupancy_device **ret_device)
{
	const char *text = opt_str(o, "cc");
	if (!text)
		return complain(EXIT_USAGE, "--cc is missing: the device's compute capability, %s",
			occupancy_device_list());
	*ret_device = occupancy_device_named(text, strlen(text));
	if (!*ret_device)
		return complain(EXIT_USAGE,
			"compute capability '%s' is not known. The known ones are %s", text,
			occupancy_device_list());
	return 0;
}

static int take_carveout(const struct options *o, struct occupancy_launch *l)
{
	uint64_t pct = 0;
	const int code = take_number(o, "carveout", 0, 100, &pct);
	l->has_carveout = true;
	l->carveout_pct = (uint8_t)pct;
	return code;
}

static int take_question(const struct options *o, struct question *q)
{
	struct occupancy_launch *l = &q->launch;
	const struct {
		const char *name;
		uint32_t *into;
	} numbers[] = {
		{ "regs", &l->regs },
		{ "smem", &l->smem_static_bytes },
		{ "dynamic", &l->smem_dynamic_bytes },
		{ "barriers", &l->barriers },
	};
	int code = take_device(o, &q->device);
	q->has_block = opt_str(o, "block") || !opt_flag(o, "scan");
	if (!code && q->has_block)
		code = take_count(o, "block", &l->threads);
	for (size_t i = 0; !code && i < sizeof numbers / sizeof numbers[0]; i++)
		code = take_count(o, numbers[i].name, numbers[i].into);
	return code ? code : take_carveout(o, l);
}

/* The rows say everything, so an option beside --csv would be passed over in silence. */
static int answer_rows(const struct options *o)
{
	static const char *const others[] = { "cc", "block", "regs", "smem", "dynamic", "barriers",
		"carveout", "scan", "json" };
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (opt_flag(o, others[i]))
			return complain(EXIT_USAGE,
				"--%s does not go with --csv, whose rows say it", others[i]);
	return occupancy_csv(stdin, stdout);
}

int cmd_occupancy(const struct options *o)
{
	struct question q = { 0 };
	if (opt_flag(o, "csv"))
		return answer_rows(o);
	const int code = take_question(o, &q);
	if (code)
		return code;
	const struct occupancy answer = occupancy_of(q.device, &q.launch);
	if (opt_flag(o, "json"))
		print_json(&q, &answer, opt_flag(o, "scan"));
	else if (opt_flag(o, "scan"))
		print_scan(&q);
	else
		print_answer(&q, &answer);
	return answer.blocks || !q.has_block ? EXIT_YES : EXIT_NO;
}
