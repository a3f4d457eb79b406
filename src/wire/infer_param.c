/* Parameters of inference requests, by the names that Triton gives them. */
#include "wire/infer_param.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static int wrong(const struct param *p, const char *what, struct error *err)
{
	return error_set(err, -EINVAL, "the parameter '%.*s' is %s", SHORT(p->name), what);
}

/* A whole number that is not negative, however it was sent. */
static int whole(const struct param *p, uint64_t *ret, struct error *err)
{
	if (p->kind == PARAM_UINT || (p->kind == PARAM_INT && p->i >= 0))
		*ret = p->u;
	else if (p->kind == PARAM_REAL && p->d >= 0 && p->d < 0x1p63 && p->d == floor(p->d))
		*ret = (uint64_t)p->d;
	else
		return wrong(p, "not a whole number of 0 or more", err);
	return 0;
}

static int boolean(const struct param *p, bool *ret, struct error *err)
{
	if (p->kind != PARAM_BOOL)
		return wrong(p, "neither true nor false", err);
	*ret = p->b;
	return 0;
}

/* Triton takes texts as names of sequences, too. */
static int sequence(const struct param *p, uint64_t *ret, struct error *err)
{
	if (p->kind != PARAM_TEXT)
		return whole(p, ret, err);
	*ret = p->s.n ? UINT64_MAX : 0;
	return 0;
}

int infer_grpc_param(struct infer_request *r, const struct param *p, struct error *err)
{
	/* This is for streams whose answers may be none: here each request has one. */
	bool asked;
	if (slice_is(p->name, "triton_enable_empty_final_response"))
		return boolean(p, &asked, err);
	return infer_request_param(r, p, err);
}

int infer_request_param(struct infer_request *r, const struct param *p, struct error *err)
{
	static const char reserved[] = "triton_";
	if (slice_is(p->name, "priority"))
		return whole(p, &r->priority, err);
	if (slice_is(p->name, "timeout"))
		return whole(p, &r->timeout_us, err);
	if (slice_is(p->name, "sequence_id"))
		return sequence(p, &r->sequence_id, err);
	if (slice_is(p->name, "binary_data_output"))
		return boolean(p, &r->binary_output, err);
	if (p->name.n >= sizeof reserved - 1 &&
		memcmp(p->name.at, reserved, sizeof reserved - 1) == 0)
		return wrong(
			p, "reserved for Triton usage, as all whose names begin with triton_", err);
	if (r->params == INFER_PARAMS)
		return error_set(err, -EINVAL, "a request has at most %d parameters", INFER_PARAMS);
	r->param[r->params++] = *p;
	return 0;
}

/* *ret_taken: the parameter was one of shared memory. */
static int region_param(const struct param *p, struct slice *region, uint64_t *offset,
	uint64_t *bytes, bool *ret_taken, struct error *err)
{
	*ret_taken = true;
	if (slice_is(p->name, "shared_memory_offset"))
		return whole(p, offset, err);
	if (slice_is(p->name, "shared_memory_byte_size"))
		return whole(p, bytes, err);
	*ret_taken = slice_is(p->name, "shared_memory_region");
	if (*ret_taken && p->kind != PARAM_TEXT)
		return wrong(p, "not a text", err);
	if (*ret_taken)
		*region = p->s;
	return 0;
}

int infer_input_param(struct infer_input *in, const struct param *p, struct error *err)
{
	bool taken;
	return region_param(p, &in->region, &in->offset, &in->region_bytes, &taken, err);
}

int infer_output_param(struct infer_output *out, const struct param *p, struct error *err)
{
	bool taken;
	uint64_t n = 0;
	int rc = region_param(p, &out->region, &out->offset, &out->region_bytes, &taken, err);
	if (rc || taken)
		return rc;
	if (slice_is(p->name, "binary_data"))
		return boolean(p, &out->binary, err);
	if (!slice_is(p->name, "classification"))
		return 0;
	rc = whole(p, &n, err);
	if (!rc && n > UINT32_MAX)
		rc = wrong(p, "larger than any number of classes", err);
	if (!rc)
		out->classes = (uint32_t)n;
	return rc;
}

void infer_request_reset(struct infer_request *r)
{
	r->model = r->version = r->id = (struct slice){ 0 };
	r->priority = r->timeout_us = r->sequence_id = 0;
	r->binary_output = r->raw = false;
	r->inputs = r->outputs = r->params = 0;
	r->memory.n = 0;
}

void infer_request_free(struct infer_request *r)
{
	buf_free(&r->memory);
	infer_request_reset(r);
}
