/*
 * The two readers of inference requests share this: the parameters that have a meaning.
 */
#pragma once

#include "wire/infer.h"

/* A name in a sentence, for %.*s. */
#define SHORT(s)     (int)((s).n < 80 ? (s).n : 80), (s).at
#define INFER_MEMORY (256 << 20) /* bytes that a request's values take besides its body */

/*
 * A parameter of the request, of an input, or of an output, by its name. Request parameters without
 * a member of their own go to r->param, other unknown ones are ignored. -EINVAL: the value is of a
 * wrong type, there are too many, or the protocol keeps the name for itself.
 */
int infer_grpc_param(struct infer_request *r, const struct param *p, struct error *err);
int infer_request_param(struct infer_request *r, const struct param *p, struct error *err);
int infer_input_param(struct infer_input *in, const struct param *p, struct error *err);
int infer_output_param(struct infer_output *out, const struct param *p, struct error *err);
