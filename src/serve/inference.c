/*
 * One inference: from bytes to a place in the queue, and from a batch's outputs to bytes.
 *
 * The first half checks all that a client could get wrong against what the model takes, so that a
 * batch of several requests can't fail because of one of them.
 */
#include <errno.h>
#include <inttypes.h>

#include "serve/internal.h"
#include "store/config_queue.h"

static const char *model_of(const struct exchange *x)
{
	return x->version->model->name;
}

/* The body is the only input (Inference-Header-Content-Length: 0). */
static int take_raw(struct exchange *x, struct error *err)
{
	const struct version *v = x->version;
	struct tensor *t = &x->infer.input[0].tensor;
	const struct tensor_spec *spec = &v->in[0].spec;
	if (v->loaded->ins != 1)
		return error_set(err, -EINVAL,
			"a raw request is for models of one input, and '%s' has %u", model_of(x),
			v->loaded->ins);
	x->infer.inputs = 1;
	t->name = slice_of(spec->name);
	t->type = spec->type;
	t->shape = spec->shape;
	if (v->batched)
		t->shape.dims[0] = 1;
	if (t->type == DTYPE_BYTES) {
		const uint32_t n = (uint32_t)t->bytes;
		buf_put(&x->scratch, &n, sizeof n);
		buf_put(&x->scratch, t->data, n);
		t->data = x->scratch.v;
		t->bytes = x->scratch.n;
		for (unsigned i = 0; i < t->shape.n; i++)
			t->shape.dims[i] = 1;
		return 0;
	}
	int64_t known = dtype_rows[t->type].bytes;
	int vary = -1;
	for (unsigned i = 0; i < t->shape.n; i++)
		if (t->shape.dims[i] >= 0)
			known *= t->shape.dims[i];
		else if (vary >= 0)
			return error_set(err, -EINVAL,
				"a raw request is for an input with one dimension that varies, and '%s' of "
				"'%s' has more",
				spec->name, model_of(x));
		else
			vary = (int)i;
	if (vary >= 0 && known > 0)
		t->shape.dims[vary] = (int64_t)t->bytes / known;
	return 0;
}

static int find_input(const struct version *v, struct slice name)
{
	for (unsigned i = 0; i < v->loaded->ins; i++)
		if (slice_is(name, v->in[i].spec.name))
			return (int)i;
	return -1;
}

/* Which input of the model each of the request's is. */
static int order_inputs(struct exchange *x, struct error *err)
{
	const struct version *v = x->version;
	memset(x->order, 0, v->loaded->ins);
	for (unsigned i = 0; i < x->infer.inputs; i++) {
		const struct slice name = x->infer.input[i].tensor.name;
		const int at = find_input(v, name);
		if (at < 0)
			return error_set(err, -EINVAL,
				"unexpected inference input '%.*s' for model '%s': it has no such input",
				SLICE_ARG(name), model_of(x));
		if (x->order[at])
			return error_set(err, -EINVAL, "input '%.*s' for model '%s' is given twice",
				SLICE_ARG(name), model_of(x));
		x->order[at] = (uint8_t)(i + 1);
	}
	for (unsigned i = 0; i < v->loaded->ins; i++)
		if (!x->order[i] && !v->in[i].spec.optional)
			return error_set(err, -EINVAL,
				"input '%s' for model '%s' is missing: the request has %u of its %u inputs",
				v->in[i].spec.name, model_of(x), x->infer.inputs, v->loaded->ins);
	return 0;
}

static int shape_error(const struct exchange *x, const struct tensor *t,
	const struct tensor_spec *s, struct error *err)
{
	struct buf said = { 0 }, wanted = { 0 };
	shape_put(&said, &t->shape);
	shape_put(&wanted, &s->shape);
	const int e = error_set(err, -EINVAL,
		"unexpected shape for input '%s' for model '%s': expected %s, got %s", s->name,
		model_of(x), buf_text(&wanted), buf_text(&said));
	buf_free(&said, &wanted);
	return e;
}

/* The shape `to`.  Its open sizes, as the rows of a batch, are those that s has where `from`, which
 * has as many, is open. */
static void reshape(const struct shape *from, const struct shape *to, struct shape *s)
{
	struct shape made = *to;
	unsigned at = 0;
	if (s->n != from->n)
		return;
	for (unsigned i = 0; i < made.n; i++) {
		while (made.dims[i] < 0 && at < from->n && from->dims[at] >= 0)
			at++;
		if (made.dims[i] < 0 && at < from->n)
			made.dims[i] = s->dims[at++];
	}
	*s = made;
}

/* A copy: the client can change or take away its memory at any time. */
static int read_region(struct exchange *x, struct infer_input *in, unsigned at, struct error *err)
{
	struct server *s = x->loop->server;
	struct tensor *t = &in->tensor;
	if (in->region_bytes > s->o.body_bytes)
		return error_set(err, -EMSGSIZE,
			"input '%.*s' has %" PRIu64 " bytes, and %" PRIu64 " MiB is the most",
			SLICE_ARG(t->name), in->region_bytes, s->o.body_bytes >> 20);
	const int e = exchange_count(x, in->region_bytes, err);
	if (e)
		return e;
	x->shared[at] = xmalloc(in->region_bytes + 1);
	t->data = x->shared[at];
	t->bytes = in->region_bytes;
	return regions_read(s->regions, in->region, in->offset, x->shared[at], t->bytes, err);
}

static int check_input(struct exchange *x, unsigned i, struct error *err)
{
	const struct version *v = x->version;
	const struct version_tensor *as = &v->in[i];
	struct infer_input *in = &x->infer.input[x->order[i] - 1];
	struct tensor *t = &in->tensor;
	if (t->type != as->spec.type)
		return error_set(err, -EINVAL,
			"inference input '%s' data-type is '%s', but model '%s' expects '%s'",
			as->spec.name, dtype_rows[t->type].name, model_of(x),
			dtype_rows[as->spec.type].name);
	if (!shape_fits(&t->shape, &as->spec.shape))
		return shape_error(x, t, &as->spec, err);
	if (in->region.at) {
		const int e = read_region(x, in, x->order[i] - 1u, err);
		if (e)
			return e;
	}
	const int e = tensor_check(t, err);
	if (!e && as->has_reshape)
		reshape(&as->spec.shape, &as->reshape, &t->shape);
	return e;
}

/* Rows of the request, which all its inputs have. */
static int count_rows(struct exchange *x, struct error *err)
{
	const struct version *v = x->version;
	x->item.rows = 1;
	for (unsigned i = 0; v->batched && i < x->infer.inputs; i++) {
		const struct tensor *t = &x->infer.input[i].tensor;
		const int64_t rows = t->shape.dims[0];
		if (rows < 1 || rows > v->config->max_batch_size)
			return error_set(err, -EINVAL,
				"inference request batch-size must be 1 to %u for '%s', and input '%.*s' has "
				"%" PRId64,
				v->config->max_batch_size, model_of(x), SLICE_ARG(t->name), rows);
		if (i && rows != x->item.rows)
			return error_set(err, -EINVAL,
				"input '%.*s' batch size does not match other inputs for '%s': %" PRId64
				" and %u",
				SLICE_ARG(t->name), model_of(x), rows, x->item.rows);
		x->item.rows = (uint32_t)rows;
	}
	return 0;
}

static int check_outputs(const struct exchange *x, struct error *err)
{
	const struct version *v = x->version;
	for (unsigned i = 0; i < x->infer.outputs; i++) {
		const struct infer_output *o = &x->infer.output[i];
		unsigned k = 0;
		while (k < v->loaded->outs && !slice_is(o->name, v->out[k].spec.name))
			k++;
		if (k == v->loaded->outs)
			return error_set(err, -EINVAL,
				"unexpected inference output '%.*s' for model '%s'",
				SLICE_ARG(o->name), model_of(x));
		if (o->region.at && o->classes)
			return error_set(err, -EINVAL,
				"output '%.*s' can't be both classified and put into shared memory",
				SLICE_ARG(o->name));
	}
	return 0;
}

/* Engines read elements where they lie, and a body can put them anywhere. */
static void align_inputs(struct exchange *x)
{
	size_t need = x->scratch.n;
	for (unsigned i = 0; i < x->infer.inputs; i++)
		need += x->infer.input[i].tensor.bytes + 8;
	bool reserved = false;
	for (unsigned i = 0; i < x->infer.inputs; i++) {
		struct tensor *t = &x->infer.input[i].tensor;
		const unsigned each = dtype_rows[t->type].bytes;
		if (each < 2 || ((uintptr_t)t->data & (each - 1)) == 0)
			continue;
		if (!reserved)
			buf_more(&x->scratch, need);
		reserved = true;
		x->scratch.n = (x->scratch.n + 7) & ~(size_t)7;
		memcpy(x->scratch.v + x->scratch.n, t->data, t->bytes);
		t->data = x->scratch.v + x->scratch.n;
		x->scratch.n += t->bytes;
	}
}

/* The device's thread may take the request meanwhile: it finds each input as it was, or staged. The
 * exchange comes back to this thread, so it stays until all are. */
static void stage(struct exchange *x)
{
	struct server *s = x->loop->server;
	for (unsigned i = 0; x->may_stage && i < x->infer.inputs; i++) {
		const struct tensor *t = &x->infer.input[i].tensor;
		struct exchange_staged *to = &x->staged[i];
		const uint64_t held = load_relaxed(&s->held_bytes);
		if (held + t->bytes > s->o.memory_bytes ||
			!engine_stage(x->version->loaded, t->data, t->bytes, &to->copy))
			continue;
		add_relaxed(&s->held_bytes, t->bytes);
		x->held += t->bytes;
		store_release(&to->at, to->copy.data);
	}
}

void infer_unstage(struct exchange *x)
{
	for (unsigned i = 0; x->may_stage && i < x->infer.inputs; i++) {
		store_relaxed(&x->staged[i].at, NULL);
		engine_unstage(x->version->loaded, &x->staged[i].copy);
	}
	x->may_stage = false;
}

static uint64_t earlier(uint64_t deadline, uint64_t from, uint64_t after_ns)
{
	const uint64_t at = sat_add(from, after_ns);
	return after_ns && at < deadline ? at : deadline;
}

static void set_times(struct exchange *x)
{
	struct batch_item *item = &x->item;
	item->arrived_ns = monotonic_ns();
	uint64_t deadline = earlier(UINT64_MAX, x->began_ns, x->timeout_ns);
	deadline = earlier(deadline, x->began_ns, sat_mul(x->infer.timeout_us, 1000));
	item->deadline_ns = earlier(
		deadline, x->began_ns, sat_mul(load_relaxed(&x->version->deadline_us), 1000));
	const struct config_wait wait = config_wait(x->version->config, x->infer.priority);
	item->class = wait.class;
	item->start_by_ns = earlier(UINT64_MAX, item->arrived_ns, wait.timeout_ns);
}

/* Requests run together when all but the number of rows is equal. */
static void set_group(struct exchange *x)
{
	struct version *v = x->version;
	if (!v->shapes_vary)
		return;
	struct buf b = { 0 };
	for (unsigned i = 0; i < v->loaded->ins; i++) {
		const struct shape none = { 0 };
		const struct shape *s =
			x->order[i] ? &x->infer.input[x->order[i] - 1].tensor.shape : &none;
		const unsigned from = v->batched && s->n ? 1 : 0;
		buf_put(&b, &s->n, sizeof s->n);
		buf_put(&b, s->dims + from, (s->n - from) * sizeof s->dims[0]);
	}
	x->group_key = map_text_key(b.v, b.n, b.n);
	buf_free(&b);
}

static int read_request(struct exchange *x, struct error *err)
{
	char *body = x->body.v + x->body_at;
	const size_t n = x->body.n - x->body_at;
	if (x->grpc)
		return infer_pb_read(&x->infer, body, n, err);
	x->infer.model = x->match.model;
	x->infer.version = x->match.version;
	return infer_json_read(&x->infer, body, n, x->has_infer_length ? x->infer_length : n, err);
}

static int check_request(struct exchange *x, struct error *err)
{
	int e = 0;
	if (x->infer.sequence_id)
		return error_set(err, -EOPNOTSUPP,
			"sequences are not supported, and the request has a sequence_id");
	if (x->infer.raw)
		e = take_raw(x, err);
	e = e ? e : order_inputs(x, err);
	for (unsigned i = 0; !e && i < x->version->loaded->ins; i++)
		if (x->order[i])
			e = check_input(x, i, err);
	e = e ? e : count_rows(x, err);
	return e ? e : check_outputs(x, err);
}

static int find_model(struct exchange *x, struct error *err)
{
	return models_find(
		&x->loop->server->models, x->infer.model, x->infer.version, &x->version, err);
}

static void fail(struct exchange *x, int code, struct error *err)
{
	if (x->version) {
		struct version_stats *s = &x->version->stats;
		add_relaxed(&s->fail.count, 1);
		add_relaxed(&s->fail.ns, monotonic_ns() - x->began_ns);
		if (code != -ETIME && code != -ENOBUFS)
			add_relaxed(&s->rejected, 1);
	}
	const struct error copy = *err;
	exchange_fail(x, code, "%s", copy.text);
}

void infer_start(struct exchange *x)
{
	struct server *s = x->loop->server;
	struct error err;
	recorded_number(x);
	int e = read_request(x, &err);
	/* Numbers that were text take more room than the text. */
	if (!e && x->infer.memory.n && !exchange_hold(x, x->infer.memory.n))
		return;
	e = e ? e : find_model(x, &err);
	e = e ? e : check_request(x, &err);
	if (!e && load_relaxed(&s->exchanges) > EXCHANGES_MOST)
		e = error_set(&err, -ENOBUFS, "the server has %u requests already", EXCHANGES_MOST);
	if (!e && x->token && !token_take(x->token, x->item.rows, monotonic_ns(), &x->retry_ns)) {
		add_relaxed(&s->refused_rate, 1);
		e = error_set(&err, -ENOBUFS, "this client asks more often than its token may");
	}
	if (e) {
		fail(x, e, &err);
		return;
	}
	align_inputs(x);
	set_times(x);
	set_group(x);
	x->away = true;
	if (device_admit(x->version->device, x)) {
		stage(x);
		return;
	}
	x->away = false;
	fail(x, x->status, &x->err);
}

/* The request's rows of an output of the batch. */
static struct tensor rows_of(const struct exchange *x, unsigned output)
{
	const struct version *v = x->version;
	const struct engine_output *o = &x->batch->run.out[output];
	struct tensor t = { slice_of(v->out[output].spec.name), o->type, o->shape, o->data,
		o->bytes };
	const struct version_tensor *as = &v->out[output];
	if (!v->batched) {
		if (as->has_reshape)
			reshape(&as->reshape, &as->spec.shape, &t.shape);
		return t;
	}
	const uint32_t all = x->batch->rows, rows = x->item.rows, first = x->first_row;
	t.shape.dims[0] = rows;
	if (o->type != DTYPE_BYTES) {
		const size_t each = o->bytes / all;
		t.data = (const char *)o->data + first * each;
		t.bytes = rows * each;
	} else {
		uint64_t elements = 0;
		shape_elements(&o->shape, &elements);
		const size_t begin = bytes_skip(o->data, elements / all * first);
		t.data = (const char *)o->data + begin;
		t.bytes = bytes_skip(t.data, elements / all * rows);
	}
	if (as->has_reshape)
		reshape(&as->reshape, &as->spec.shape, &t.shape);
	return t;
}

/* Into the client's shared memory, where it asked for that. */
static int put_into_region(
	struct exchange *x, const struct infer_output *asked, struct tensor *t, struct error *err)
{
	if (t->bytes > asked->region_bytes)
		return error_set(err, -EINVAL,
			"output '%.*s' has %zu bytes, and the request gave it %" PRIu64
			" bytes of region '%.*s'",
			SLICE_ARG(t->name), t->bytes, asked->region_bytes,
			SLICE_ARG(asked->region));
	const int e = regions_write(
		x->loop->server->regions, asked->region, asked->offset, t->data, t->bytes, err);
	t->data = NULL;
	return e;
}

static int put_output(struct exchange *x, struct infer_answer *a, unsigned output,
	const struct infer_output *asked, struct error *err)
{
	struct tensor *t = &a->output[a->outputs];
	*t = rows_of(x, output);
	a->binary[a->outputs] = x->infer.raw || (asked ? asked->binary : x->infer.binary_output);
	if (asked && asked->classes) {
		if (!x->classes)
			x->classes = xcalloc(INFER_TENSORS, sizeof *x->classes);
		const int e = classes_put(t, x->version->batched, asked->classes,
			x->version->out[output].labels, x->version->out[output].nlabels,
			&x->classes[a->outputs], err);
		if (e)
			return e;
	}
	a->outputs++;
	return asked && asked->region.at ? put_into_region(x, asked, t, err) : 0;
}

static int put_outputs(struct exchange *x, struct infer_answer *a, struct error *err)
{
	const struct version *v = x->version;
	int e = 0;
	for (unsigned i = 0; !e && !x->infer.outputs && i < v->loaded->outs; i++)
		e = put_output(x, a, i, NULL, err);
	for (unsigned k = 0; !e && k < x->infer.outputs; k++)
		for (unsigned i = 0; !e && i < v->loaded->outs; i++)
			if (slice_is(x->infer.output[k].name, v->out[i].spec.name))
				e = put_output(x, a, i, &x->infer.output[k], err);
	return e;
}

static int put_answer(struct exchange *x, struct error *err)
{
	struct infer_answer a; /* 15 KB, of which little is used */
	a.outputs = a.params = 0;
	a.model = slice_of(model_of(x));
	a.version = slice_of(x->version->text);
	a.id = x->infer.id;
	int e = put_outputs(x, &a, err);
	if (x->streamed)
		a.param[a.params++] = (struct param){
			.name = SLICE("triton_final_response"), .kind = PARAM_BOOL, .b = true
		};
	x->answer.n = 0;
	if (!e && x->streamed)
		infer_pb_put_stream(&x->answer, &a, NULL);
	else if (!e && x->grpc)
		infer_pb_put(&x->answer, &a);
	else if (!e)
		e = infer_json_put(&x->answer, &a, &x->answer_json, err);
	x->content_type = x->answer_json ? "application/octet-stream" : "application/json";
	for (unsigned i = 0; x->classes && i < INFER_TENSORS; i++)
		buf_free(&x->classes[i]);
	free(x->classes);
	x->classes = NULL;
	return e;
}

static void add(struct duration *d, uint64_t ns)
{
	add_relaxed(&d->count, 1);
	add_relaxed(&d->ns, ns);
}

static void count(struct exchange *x, uint64_t began)
{
	struct version_stats *s = &x->version->stats;
	const uint64_t now = x->sent_ns = monotonic_ns();
	add(&s->success, now - x->began_ns);
	stats_add_latency(s, now - x->began_ns);
	add(&s->queue, x->ran_ns - x->queued_ns);
	add(&s->output, now - began);
	add_relaxed(&s->inferences, x->item.rows);
	if (x->item.deadline_ns != UINT64_MAX)
		add_relaxed(now <= x->item.deadline_ns ? &s->met : &s->late, 1);
}

void infer_finish(struct exchange *x)
{
	const uint64_t began = monotonic_ns();
	int e = x->status;
	if (!x->conn) {
		exchange_free(x);
		return;
	}
	if (!e)
		e = put_answer(x, &x->err);
	if (e) {
		fail(x, e, &x->err);
		return;
	}
	count(x, began);
	conn_answered(x);
}
