/*
 * Sections requests, what a server of models was asked, the slowest first, and request, one of them
 * (model/request_times.h).
 */
#include "list/lists.h"

#include "base/sort.h"
#include "model/request_times.h"

struct listed {
	const struct request_row *q;
	struct behind behind; /* the model that it waited for longest; ns 0: for none */
};

struct listed_all {
	ARRAY(struct listed) v;
};

static int total_order(const void *one, const void *two)
{
	const struct request_row *a = ((const struct listed *)one)->q,
				 *b = ((const struct listed *)two)->q;
	const uint64_t x = request_total(a), y = request_total(b);
	return x != y ? ORDER(y, x) : ORDER(a->q.id, b->q.id);
}

static void add_listed(const struct report *r, const struct request_row *q, struct listed_all *to)
{
	struct behinds behind = { 0 };
	request_behind(r->requests, q, &behind);
	*array_push(&to->v) = (struct listed){ .q = q,
		.behind = behind.v.n ? behind.v.v[0] : (struct behind){ 0 } };
	array_free(&behind.v);
}

static void make_requests(struct rows *rows)
{
	struct listed_all all = { 0 };
	const struct requests *q = rows->r->requests;
	for (size_t i = 0; i < q->v.n; i++)
		add_listed(rows->r, &q->v.v[i], &all);
	SORT(all.v, total_order);
	rows_own(rows, all.v.v, all.v.n, sizeof *all.v.v);
}

static void make_request(struct rows *rows)
{
	struct listed_all one = { 0 };
	const struct report *r = rows->r;
	rows->absent = r->request == REQUEST_NONE;
	if (!rows->absent)
		add_listed(r, &r->requests->v.v[r->request], &one);
	rows_own(rows, one.v.v, one.v.n, sizeof *one.v.v);
}

FINDER(request_of, struct listed, it, it->q)

static const void *with_deadline(const struct row *row)
{
	const struct request_row *q = request_of(row);
	return q->q.deadline_ns ? q : NULL;
}

static const struct batch_row *batch_of(const struct row *row, const void *of)
{
	const struct request_row *q = of;
	return q->batch == BATCH_NONE ? NULL : &row->r->requests->batches.v[q->batch];
}

static const void *in_batch(const struct row *row)
{
	const struct request_row *q = request_of(row);
	return q->q.batch ? q : NULL;
}

static const void *waited(const struct row *row)
{
	const struct behind *b = &((const struct listed *)row->at)->behind;
	return b->ns ? b : NULL;
}

static const void *traced(const struct row *row)
{
	const struct request_row *q = request_of(row);
	for (size_t i = 0; i < sizeof q->q.trace_id; i++)
		if (q->q.trace_id[i])
			return q;
	return NULL;
}

GETTER(get_outcome, struct request_row, it, value_text(request_outcome_name(it->q.outcome)))
GETTER(get_cause, void, of, value_text(request_part_name(request_cause(of))))
GETTER(get_total, void, of, value_u64(request_total(of)))
GETTER(get_model, uint32_t, name,
	*name == META_NONE ? value_null() : value_text(rows_name(row->rows, *name)))

static struct value get_deadline(const struct row *row, const void *of)
{
	const struct served_request *q = &((const struct request_row *)of)->q;
	const uint64_t from = q->ns[REQUEST_BEGAN];
	return value_u64(q->deadline_ns > from ? q->deadline_ns - from : 0);
}

static struct value get_batch_requests(const struct row *row, const void *of)
{
	const struct batch_row *b = batch_of(row, of);
	return value_u64_if(b, b ? b->requests : 0);
}

static struct value get_beside(const struct row *row, const void *of)
{
	const struct batch_row *b = batch_of(row, of);
	const bool told = requests_tell(row->r->requests, PART_NEIGHBOURS);
	return value_u64_if(b && told, b ? b->beside_ns : 0);
}

static struct value get_trace_id(const struct row *row, const void *of)
{
	const struct served_request *q = &((const struct request_row *)of)->q;
	for (size_t i = 0; i < sizeof q->trace_id; i++)
		snprintf(row->text + 2 * i, 3, "%02x", q->trace_id[i]);
	return value_text(row->text);
}

FINDER(measured, void, at, requests_tell(row->r->requests, PART_KERNELS) ? request_of(row) : NULL)

#define OF(member) .find = request_of, AT(struct request_row, member)
#define PART(key, heading, meaning, which)                                                         \
	{                                                                                          \
		key, UNIT_NS, heading, meaning, .get = get_u64, OF(part[which]), .sums = true      \
	}
#define PART_ON_GPU(key, heading, meaning, which)                                                  \
	{                                                                                          \
		key, UNIT_NS, heading, meaning,                                                    \
			.find = measured, MEMBER(struct request_row, part[which]), .sums = true    \
	}

static const struct column request_columns[] = {
	{ "id", UNIT_ID, "request", "its number in the recording", .get = get_u64, OF(q.id) },
	{ "outcome", UNIT_TEXT, "outcome",
		"`answered` (it had no deadline), `met`, `late`, `shed`, `refused`, `cancelled`, `failed`",
		.get = get_outcome, .find = request_of },
	{ "cause", UNIT_TEXT, "cause", "the longest of its parts, without `_ns`", .get = get_cause,
		.find = request_of },
	{ "total_ns", UNIT_NS, "time", "from its first byte to its answer", .get = get_total,
		.find = request_of, .sums = true },
	{ "model", UNIT_TEXT, "model", "null: it named none that is served", .get = get_model,
		OF(model) },
	{ "version", UNIT_ID, "version", "of the model", .get = get_u64, OF(q.version) },
	{ "class", UNIT_ID, "class", "of its priority; 0 is the highest", .get = get_u16,
		OF(q.class) },
	{ "rows", UNIT_COUNT, "rows", "of its inputs", .get = get_u32, OF(q.rows), .sums = true },
	{ "deadline_ns", UNIT_NS, "deadline", "from its first byte; null: none",
		.get = get_deadline, .find = with_deadline },
	{ "start_ns", UNIT_MOMENT, "at", "when its first byte came", .get = get_since_start,
		OF(q.ns[REQUEST_BEGAN]) },
	{ "batch", UNIT_ID, "batch", "number of the batch that it ran in; null: in none",
		.find = in_batch, MEMBER(struct request_row, q.batch) },
	{ "batch_rows", UNIT_COUNT, "batch rows", "of that batch", .find = in_batch,
		MEMBER(struct request_row, q.batch_rows) },
	{ "batch_requests", UNIT_COUNT, "batch requests", "of that batch in the recording",
		.get = get_batch_requests, .find = in_batch },
	PART("socket_ns", "socket", "from its first byte to its last one", PART_SOCKET),
	PART("parse_ns", "parse", "until it was parsed, checked and admitted", PART_PARSE),
	PART("queue_ns", "queue", "until a batch took it", PART_QUEUE),
	PART("gather_ns", "gather", "until the inputs of the batch were put together", PART_GATHER),
	PART_ON_GPU("kernels_ns", "kernels",
		"kernels of its batch ran; null: nothing was recorded of GPUs", PART_KERNELS),
	PART_ON_GPU("copies_ns", "copies",
		"memcpys and memsets of its batch ran, and no kernel of it; null: as of kernels",
		PART_COPIES),
	PART_ON_GPU("neighbours_ns", "neighbours",
		"so much longer than usual its batch took, as long as others had work on GPUs beside it",
		PART_NEIGHBOURS),
	PART("engine_ns", "engine", "the rest of the engine's time, on the host", PART_ENGINE),
	PART("answer_ns", "answer", "until its answer was given to the connection", PART_ANSWER),
	{ "behind", UNIT_TEXT, "behind",
		"model whose batches ran longest while it was queued; null: none ran",
		.get = get_model, .find = waited, AT(struct behind, model) },
	{ "behind_batches", UNIT_COUNT, "batches", "of that model meanwhile", .find = waited,
		MEMBER(struct behind, batches) },
	{ "behind_ns", UNIT_NS, "behind for", "how long those ran meanwhile", .find = waited,
		MEMBER(struct behind, ns), .sums = true },
	{ "beside_ns", UNIT_NS, "beside",
		"work of others ran on GPUs while its batch was on the device; null: in none",
		.get = get_beside, .find = in_batch },
	{ "trace_id", UNIT_TEXT, "trace", "of its `traceparent`; null: it had none",
		.get = get_trace_id, .find = traced },
	{ "pid", UNIT_ID, "pid", "of the server", .get = get_pid, OF(process) },
	{ 0 },
};

const struct section section_requests = {
	.name = "requests",
	.heading = "Requests by time",
	.about =
		"Requests to `weir serve -o`, the slowest first. The time of a request is the sum of its nine parts, from `socket_ns` to `answer_ns`. A batch is usual if it takes the median of its model and number of rows. That median is of the batches beside which nothing ran, if there are some.",
	.of = OF_REQUESTS,
	.facets = FACET(REQUESTS),
	.columns = request_columns,
	.make = make_requests,
	.asked = true,
	.shown =
		"id,outcome,total_ns,cause,behind,socket_ns,parse_ns,queue_ns,gather_ns,kernels_ns,"
		"copies_ns,neighbours_ns,engine_ns,answer_ns,rows,batch_rows,model",
	.note = "Cause is the longest part.  Behind is the model whose batches ran longest while the request was queued.  Neighbours is how much longer than usual the batch took beside work of others.",
};

const struct section section_request = {
	.name = "request",
	.heading = "Request",
	.about =
		"The request that `--request` names. Its columns are those of [`requests`](#requests).",
	.form = SECTION_OBJECT,
	.of = OF_REQUEST,
	.facets = FACET(REQUESTS),
	.columns = request_columns,
	.make = make_request,
	.asked = true,
};
