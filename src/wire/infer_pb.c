/*
 * ModelInferRequest and ModelInferResponse by hand, since every request passes here: raw contents
 * stay where they are in the message, and only typed contents are copied, into the request's
 * memory. Numbers of fields are those of api/infer.tbl, and a test compares the two.
 */
#include "wire/infer.h"

#include "base/text.h"
#include "wire/infer_param.h"
#include "wire/pb.h"

/* Besides what stands in the request. */
struct reading {
	struct infer_request *r;
	struct error *err;
	struct slice contents[INFER_TENSORS], raw[INFER_TENSORS];
	unsigned raws;
};

static int malformed(const struct reading *in, const char *what)
{
	return error_set(in->err, -EINVAL, "%s of the request is cut off or is no protobuf", what);
}

/* A text of protobuf is UTF-8. */
static int read_text(
	const struct reading *in, const struct pb_field *f, const char *what, struct slice *ret)
{
	const unsigned char *s = (const unsigned char *)f->bytes.at;
	for (size_t i = 0, n = 0; i < f->bytes.n; i += n) {
		n = s[i] < 128 ? 1 : utf8_length(s + i, f->bytes.n - i);
		if (!n)
			return error_set(in->err, -EINVAL, "%s is not UTF-8", what);
	}
	*ret = f->bytes;
	return 0;
}

/* An InferParameter. One without a value is none: ret->name.at is NULL. */
static int read_param_value(const struct reading *in, struct slice s, struct param *ret)
{
	struct pb_field f;
	int rc;
	while ((rc = pb_next(&s, &f)) > 0) {
		const uint32_t key = f.number << 3 | f.form;
		if (key == (1 << 3 | PB_VARINT)) {
			ret->kind = PARAM_BOOL;
			ret->b = f.value != 0;
		} else if (key == (2 << 3 | PB_VARINT)) {
			ret->kind = PARAM_INT;
			ret->i = (int64_t)f.value;
		} else if (key == (3 << 3 | PB_BYTES)) {
			ret->kind = PARAM_TEXT;
			rc = read_text(in, &f, "a parameter", &ret->s);
			if (rc)
				return rc;
		} else if (key == (4 << 3 | PB_64)) {
			ret->kind = PARAM_REAL;
			memcpy(&ret->d, &f.value, sizeof ret->d);
		} else if (key == (5 << 3 | PB_VARINT)) {
			ret->kind = PARAM_UINT;
			ret->u = f.value;
		} else {
			continue;
		}
		ret->name.at = "";
	}
	return rc ? malformed(in, "a parameter") : 0;
}

/* An entry of map<string, InferParameter>. */
static int read_param(const struct reading *in, struct slice s, struct param *ret)
{
	struct slice name = SLICE("");
	struct pb_field f;
	int rc;
	*ret = (struct param){ 0 };
	while ((rc = pb_next(&s, &f)) > 0) {
		if (f.form != PB_BYTES)
			continue;
		if (f.number == 1)
			rc = read_text(in, &f, "the name of a parameter", &name);
		else if (f.number == 2)
			rc = read_param_value(in, f.bytes, ret);
		if (rc < 0)
			return rc;
	}
	if (ret->name.at)
		ret->name = name;
	return rc ? malformed(in, "a parameter") : 0;
}

static int push_dim(const struct reading *in, struct tensor *t, uint64_t dim)
{
	if (t->shape.n == SHAPE_DIMS)
		return error_set(in->err, -EINVAL, "input '%.*s' has more than %d dimensions",
			SHORT(t->name), SHAPE_DIMS);
	t->shape.dims[t->shape.n++] = (int64_t)dim;
	return 0;
}

static int read_dims(const struct reading *in, struct tensor *t, struct slice packed)
{
	uint64_t dim;
	while (packed.n) {
		if (pb_varint(&packed, &dim))
			return malformed(in, "a shape");
		if (push_dim(in, t, dim))
			return -EINVAL;
	}
	return 0;
}

static int read_input_field(struct reading *in, struct infer_input *ret, const struct pb_field *f)
{
	struct slice *contents = &in->contents[ret - in->r->input], type;
	struct param p;
	int rc = 0;
	if (f->form == PB_VARINT && f->number == 3)
		return push_dim(in, &ret->tensor, f->value);
	if (f->form != PB_BYTES)
		return 0;
	switch (f->number) {
	case 1:
		return read_text(in, f, "the name of an input", &ret->tensor.name);
	case 2:
		rc = read_text(in, f, "the datatype of an input", &type);
		if (rc)
			return rc;
		ret->tensor.type = dtype_find(type);
		if (ret->tensor.type == DTYPE_NONE)
			return error_set(
				in->err, -EINVAL, "there is no datatype '%.*s'", SHORT(type));
		return 0;
	case 3:
		return read_dims(in, &ret->tensor, f->bytes);
	case 4:
		rc = read_param(in, f->bytes, &p);
		return rc || !p.name.at ? rc : infer_input_param(ret, &p, in->err);
	case 5:
		if (contents->at)
			return error_set(in->err, -EINVAL, "an input has contents twice");
		*contents = f->bytes;
		return 0;
	default:
		return 0;
	}
}

static int read_input(struct reading *in, struct slice s)
{
	struct infer_request *r = in->r;
	struct infer_input *const ret = &r->input[r->inputs];
	struct pb_field f;
	int rc;
	if (r->inputs == INFER_TENSORS)
		return error_set(
			in->err, -EINVAL, "a request has at most %d inputs", INFER_TENSORS);
	*ret = (struct infer_input){ .tensor.name = SLICE("") };
	in->contents[r->inputs] = (struct slice){ 0 };
	while ((rc = pb_next(&s, &f)) > 0) {
		rc = read_input_field(in, ret, &f);
		if (rc)
			return rc;
	}
	if (rc)
		return malformed(in, "an input");
	r->inputs++;
	if (ret->tensor.type == DTYPE_NONE)
		return error_set(
			in->err, -EINVAL, "input '%.*s' has no datatype", SHORT(ret->tensor.name));
	return 0;
}

static int read_output(struct reading *in, struct slice s)
{
	struct infer_request *r = in->r;
	struct infer_output *const ret = &r->output[r->outputs];
	struct pb_field f;
	struct param p;
	int rc;
	if (r->outputs == INFER_TENSORS)
		return error_set(
			in->err, -EINVAL, "a request has at most %d outputs", INFER_TENSORS);
	*ret = (struct infer_output){ .name = SLICE("") };
	while ((rc = pb_next(&s, &f)) > 0) {
		if (f.form != PB_BYTES)
			continue;
		if (f.number == 1)
			rc = read_text(in, &f, "the name of an output", &ret->name);
		else if (f.number == 2 && (rc = read_param(in, f.bytes, &p)) == 0 && p.name.at)
			rc = infer_output_param(ret, &p, in->err);
		if (rc < 0)
			return rc;
	}
	r->outputs++;
	return rc ? malformed(in, "an output") : 0;
}

static int read_field(struct reading *in, const struct pb_field *f)
{
	struct param p;
	int rc;
	if (f->form != PB_BYTES)
		return 0;
	switch (f->number) {
	case 1:
		return read_text(in, f, "the name of the model", &in->r->model);
	case 2:
		return read_text(in, f, "the version of the model", &in->r->version);
	case 3:
		return read_text(in, f, "the id", &in->r->id);
	case 4:
		rc = read_param(in, f->bytes, &p);
		return rc || !p.name.at ? rc : infer_grpc_param(in->r, &p, in->err);
	case 5:
		return read_input(in, f->bytes);
	case 6:
		return read_output(in, f->bytes);
	case 7:
		if (in->raws == INFER_TENSORS)
			return error_set(
				in->err, -EINVAL, "a request has at most %d inputs", INFER_TENSORS);
		in->raw[in->raws++] = f->bytes;
		return 0;
	default:
		return 0;
	}
}

/* The field of InferTensorContents that holds a type's elements; 0: there is none. */
static uint32_t contents_field(enum dtype type)
{
	static const uint8_t fields[DTYPES] = {
		[DTYPE_BOOL] = 1,
		[DTYPE_INT8] = 2,
		[DTYPE_INT16] = 2,
		[DTYPE_INT32] = 2,
		[DTYPE_INT64] = 3,
		[DTYPE_UINT8] = 4,
		[DTYPE_UINT16] = 4,
		[DTYPE_UINT32] = 4,
		[DTYPE_UINT64] = 5,
		[DTYPE_FP32] = 6,
		[DTYPE_FP64] = 7,
		[DTYPE_BYTES] = 8,
	};
	return fields[type];
}

/* The place for typed contents: at is NULL while they are only measured. */
struct filling {
	const struct reading *in;
	const struct tensor *tensor;
	char *at;
	size_t used, most; /* bytes */
};

static int fill(struct filling *to, const void *bytes, size_t n)
{
	if (n > to->most - to->used)
		return error_set(to->in->err, -EINVAL,
			"the contents of input '%.*s' have more elements than its shape",
			SHORT(to->tensor->name));
	if (to->at)
		memcpy(to->at + to->used, bytes, n);
	to->used += n;
	return 0;
}

static bool fits(enum dtype type, uint64_t value)
{
	const unsigned bits = dtype_rows[type].bytes * 8;
	switch (type) {
	case DTYPE_INT8:
	case DTYPE_INT16:
	case DTYPE_INT32:
		return (int64_t)value >= -(INT64_C(1) << (bits - 1)) &&
		       (int64_t)value < INT64_C(1) << (bits - 1);
	case DTYPE_UINT8:
	case DTYPE_UINT16:
	case DTYPE_UINT32:
		return value < UINT64_C(1) << bits;
	default:
		return true;
	}
}

static int fill_number(struct filling *to, uint64_t value)
{
	const enum dtype type = to->tensor->type;
	if (type == DTYPE_BOOL)
		value = value != 0;
	if (!fits(type, value))
		return error_set(to->in->err, -EINVAL,
			"the contents of input '%.*s' have an element that is not %s",
			SHORT(to->tensor->name), dtype_rows[type].name);
	return fill(to, &value, dtype_rows[type].bytes);
}

static int fill_field(struct filling *to, const struct pb_field *f)
{
	const enum dtype type = to->tensor->type;
	const enum pb_form form = type == DTYPE_FP32   ? PB_32
				  : type == DTYPE_FP64 ? PB_64
						       : PB_VARINT;
	struct slice packed = f->bytes;
	uint64_t value;
	int rc = 0;
	if (type == DTYPE_BYTES && f->form == PB_BYTES) {
		const uint32_t n = (uint32_t)f->bytes.n;
		if (f->bytes.n > UINT32_MAX)
			return error_set(to->in->err, -EMSGSIZE, "an element has 4 GiB or more");
		rc = fill(to, &n, sizeof n);
		return rc ? rc : fill(to, f->bytes.at, f->bytes.n);
	}
	if (type != DTYPE_BYTES && f->form == form)
		return fill_number(to, f->value);
	if (type != DTYPE_BYTES && f->form == PB_BYTES)
		while (!rc && packed.n)
			rc = pb_value(&packed, form, &value) ? malformed(to->in, "the contents")
							     : fill_number(to, value);
	return rc;
}

/* Walks the contents of an input; to->used is what they take. */
static int fill_contents(struct filling *to, struct slice s)
{
	const enum dtype type = to->tensor->type;
	struct pb_field f;
	int rc;
	while ((rc = pb_next(&s, &f)) > 0) {
		if (f.number == contents_field(type))
			rc = fill_field(to, &f);
		else if (f.number <= 8 && (f.form != PB_BYTES || f.bytes.n || f.number == 8))
			return error_set(to->in->err, -EINVAL,
				"the contents of input '%.*s' are not those of %s%s",
				SHORT(to->tensor->name), dtype_rows[type].name,
				contents_field(type) ? ""
						     : ", which has to be in raw_input_contents");
		if (rc < 0)
			return rc;
	}
	return rc ? malformed(to->in, "the contents of an input") : 0;
}

/* Measures the contents of all inputs, makes room once, and fills it. */
static int place_contents(struct reading *in)
{
	struct infer_request *r = in->r;
	size_t bytes[INFER_TENSORS], total = 0;
	char *at;
	int rc;
	for (unsigned i = 0; i < r->inputs; i++) {
		struct filling measure = { in, &r->input[i].tensor, .most = SIZE_MAX };
		bytes[i] = 0;
		if (r->input[i].region.at || !in->contents[i].at)
			continue;
		rc = fill_contents(&measure, in->contents[i]);
		if (rc)
			return rc;
		bytes[i] = measure.used;
		total += (bytes[i] + 15) & ~(size_t)15;
		if (total > INFER_MEMORY)
			return error_set(in->err, -EMSGSIZE,
				"the inputs take more than %d MiB in memory", INFER_MEMORY >> 20);
	}
	at = total ? buf_more(&r->memory, total) : NULL;
	for (unsigned i = 0; i < r->inputs; i++) {
		struct tensor *t = &r->input[i].tensor;
		struct filling to = { in, t, at, .most = bytes[i] };
		if (r->input[i].region.at)
			continue;
		if (bytes[i])
			fill_contents(&to, in->contents[i]);
		t->data = bytes[i] ? at : "";
		t->bytes = bytes[i];
		at = bytes[i] ? at + ((bytes[i] + 15) & ~(size_t)15) : at;
	}
	r->memory.n += total;
	return 0;
}

/* Raw contents are given to the inputs that are not in shared memory, in order. */
static int place_raw(struct reading *in)
{
	struct infer_request *r = in->r;
	unsigned used = 0;
	for (unsigned i = 0; i < r->inputs; i++) {
		struct tensor *t = &r->input[i].tensor;
		if (r->input[i].region.at)
			continue;
		if (in->contents[i].at && in->contents[i].n)
			return error_set(in->err, -EINVAL,
				"input '%.*s' has contents, and raw_input_contents must hold all "
				"inputs or none",
				SHORT(t->name));
		if (used == in->raws)
			return error_set(in->err, -EINVAL,
				"raw_input_contents has %u elements, none for input '%.*s'",
				in->raws, SHORT(t->name));
		t->data = in->raw[used].at;
		t->bytes = in->raw[used++].n;
	}
	if (used < in->raws)
		return error_set(in->err, -EINVAL,
			"raw_input_contents has %u elements for %u inputs", in->raws, used);
	return 0;
}

static int read_request(struct reading *in, struct slice s)
{
	struct infer_request *r = in->r;
	struct pb_field f;
	int rc;
	while ((rc = pb_next(&s, &f)) > 0) {
		rc = read_field(in, &f);
		if (rc)
			return rc;
	}
	if (rc)
		return malformed(in, "the message");
	rc = in->raws ? place_raw(in) : place_contents(in);
	for (unsigned i = 0; !rc && i < r->inputs; i++)
		if (!r->input[i].region.at)
			rc = tensor_check(&r->input[i].tensor, in->err);
	return rc;
}

int infer_pb_read(struct infer_request *r, const char *message, size_t n, struct error *err)
{
	struct reading in;
	int rc;
	in.r = r;
	in.err = err;
	in.raws = 0;
	rc = read_request(&in, (struct slice){ message, n });
	if (rc && err)
		text_make_safe(err->text); /* names in it are the client's */
	return rc;
}

static void put_text(struct buf *b, uint32_t number, struct slice s)
{
	if (s.n)
		pb_put_bytes(b, number, s);
}

static void put_param_value(struct buf *b, const struct param *p)
{
	switch (p->kind) {
	case PARAM_BOOL:
		pb_put_number(b, 1, p->b);
		break;
	case PARAM_INT:
		pb_put_number(b, 2, (uint64_t)p->i);
		break;
	case PARAM_UINT:
		pb_put_number(b, 5, p->u);
		break;
	case PARAM_REAL:
		pb_put_tag(b, 4, PB_64);
		buf_put(b, &p->d, 8);
		break;
	case PARAM_TEXT:
		pb_put_bytes(b, 3, p->s);
	}
}

static void put_param(struct buf *b, const struct param *p)
{
	const size_t begin = pb_begin(b, 4);
	put_text(b, 1, p->name);
	const size_t value = pb_begin(b, 2);
	put_param_value(b, p);
	pb_end(b, value, 0);
	pb_end(b, begin, 0);
}

static void put_dims(struct buf *b, const struct shape *s)
{
	const size_t begin = pb_begin(b, 3);
	for (unsigned i = 0; i < s->n; i++)
		pb_put_varint(b, (uint64_t)s->dims[i]);
	pb_end(b, begin, 0);
}

static void put_output(struct buf *b, const struct tensor *t)
{
	const char *type = dtype_rows[t->type].name;
	const size_t begin = pb_begin(b, 5);
	put_text(b, 1, t->name);
	pb_put_bytes(b, 2, (struct slice){ type, strlen(type) });
	if (t->shape.n)
		put_dims(b, &t->shape);
	pb_end(b, begin, 0);
}

/* All but the outputs' values. */
static void put_fields(struct buf *b, const struct infer_answer *a)
{
	put_text(b, 1, a->model);
	put_text(b, 2, a->version);
	put_text(b, 3, a->id);
	for (unsigned i = 0; i < a->params; i++)
		put_param(b, &a->param[i]);
	for (unsigned i = 0; i < a->outputs; i++)
		put_output(b, &a->output[i]);
}

/* A tensor's bytes in raw_output_contents: nothing where it is in shared memory. */
static struct slice raw_of(const struct tensor *t)
{
	return (struct slice){ t->data, t->data ? t->bytes : 0 };
}

/* What put_raws() writes. */
static size_t raws_bytes(const struct infer_answer *a)
{
	size_t n = 0;
	for (unsigned i = 0; i < a->outputs; i++) {
		const size_t raw = raw_of(&a->output[i]).n;
		n += 1 + pb_varint_bytes(raw) + raw;
	}
	return n;
}

static void put_raws(struct buf *b, const struct infer_answer *a)
{
	buf_more(b, raws_bytes(a)); /* once: values may be large */
	for (unsigned i = 0; i < a->outputs; i++)
		pb_put_bytes(b, 6, raw_of(&a->output[i]));
}

void infer_pb_put(struct buf *b, const struct infer_answer *a)
{
	put_fields(b, a);
	put_raws(b, a);
}

void infer_pb_put_stream(struct buf *b, const struct infer_answer *a, const char *error_text)
{
	put_text(b, 1, (struct slice){ error_text, error_text ? strlen(error_text) : 0 });
	if (!a)
		return;
	const size_t begin = pb_begin(b, 2);
	put_fields(b, a);
	pb_end(b, begin, raws_bytes(a)); /* before the values, which are not moved */
	put_raws(b, a);
}
