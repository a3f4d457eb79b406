/*
 * One request to infer and its answer, whichever way they came: REST with JSON and the binary
 * extension (infer_json.c), or gRPC (infer_pb.c).
 *
 * Everything borrowed points into the body, which stays until the answer was sent, or into the
 * request's memory, which stays until infer_request_reset(). One owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "tensor/tensor.h"

#define INFER_TENSORS 64 /* inputs or outputs of a request or an answer */
#define INFER_PARAMS  32

enum param_kind { PARAM_BOOL, PARAM_INT, PARAM_UINT, PARAM_REAL, PARAM_TEXT };

struct param {
	struct slice name;
	enum param_kind kind;
	union {
		bool b;
		int64_t i;
		uint64_t u;
		double d;
		struct slice s;
	};
};

struct infer_input {
	struct tensor tensor; /* data NULL if it lies in shared memory */
	struct slice region;  /* shared_memory_region; at NULL: none */
	uint64_t offset, region_bytes;
};

struct infer_output {
	struct slice name;
	bool binary;
	uint32_t classes; /* classification; 0: the values themselves */
	struct slice region;
	uint64_t offset, region_bytes;
};

struct infer_request {
	struct slice model, version; /* REST: from the path, filled by the caller */
	struct slice id;
	uint64_t priority;    /* 0: not given */
	uint64_t timeout_us;  /* parameter `timeout`; 0: not given */
	bool binary_output;   /* binary_data_output: of outputs that the request does not name */
	bool raw;             /* Inference-Header-Content-Length: 0: input[0] has data only */
	uint64_t sequence_id; /* the caller refuses it unless it is 0 */
	unsigned inputs, outputs, params;
	struct infer_input input[INFER_TENSORS];
	struct infer_output output[INFER_TENSORS]; /* none: all outputs of the model */
	struct param param[INFER_PARAMS];          /* those that are none of the above */
	struct buf memory; /* numbers and strings that the body does not hold as a tensor does */
};

/* Before each request; keeps the memory. Zeroed memory is a request that was reset. */
void infer_request_reset(struct infer_request *r);
void infer_request_free(struct infer_request *r);

struct infer_answer {
	struct slice model, version, id;
	unsigned outputs, params;
	struct tensor output[INFER_TENSORS]; /* data NULL, bytes not 0: written to shared memory */
	bool binary[INFER_TENSORS];          /* REST only */
	struct param param[INFER_PARAMS];
};

/*
 * Reads the body of a REST request. infer_length is the value of Inference-Header-Content-Length:
 * bytes of JSON before the binary data, or n if there is no such header. Strings are unescaped in
 * the body. The caller has reset the request. -EINVAL, or another code with a sentence.
 */
int infer_json_read(
	struct infer_request *r, char *body, size_t n, size_t infer_length, struct error *err);

/* Appends the JSON and behind it the binary data. *ret_json_bytes is what
 * Inference-Header-Content-Length says; 0: the answer has no binary data. */
int infer_json_put(
	struct buf *b, const struct infer_answer *a, size_t *ret_json_bytes, struct error *err);

/* Reads and appends protobuf messages, without the five bytes of gRPC in front. */
int infer_pb_read(struct infer_request *r, const char *message, size_t n, struct error *err);
void infer_pb_put(struct buf *b, const struct infer_answer *a); /* ModelInferResponse */
/* ModelStreamInferResponse: an answer, or an error's text if that is not NULL. */
void infer_pb_put_stream(struct buf *b, const struct infer_answer *a, const char *error_text);
