/*
 * The routes for clients: api/route.tbl, by path and verb over REST, by method over gRPC.
 *
 * Control methods are functions from a JSON object to a JSON object, which have the fields of the
 * messages in api/infer.tbl. Over gRPC message.h translates both; over REST route_request() and
 * route_answer() do. Any thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"
#include "route_names.h" /* enum route */

struct route_row {
	enum route route;
	const char *verbs, *path;     /* REST; NULL: it has none */
	const char *method;           /* gRPC: "/SERVICE/METHOD", or NULL */
	const char *request, *answer; /* names of messages, or NULL */
	const char *rest_key;         /* or NULL */
	const char *meaning;
};
extern const struct route_row route_rows[];
extern const size_t route_row_count;

#define ROUTE_NAMES 600
struct route_match {
	enum route route;
	struct slice model, version, region; /* at NULL: the path has none */
	const struct route_row *row;
};

/*
 * The route of a path, without its query. Names are percent-decoded into `names`, where the match
 * points to. -ENOENT: there is no such path; -ENOSYS: it is there with another verb; -EOPNOTSUPP:
 * it is one of Triton's that this server lacks; -EINVAL: an escape or a name is malformed.
 */
int route_find_rest(struct slice verb, struct slice path, char names[static ROUTE_NAMES],
	struct route_match *ret, struct error *err);
/* The route of gRPC's ":path"; -EOPNOTSUPP: there is no such method. */
int route_find_grpc(struct slice path, struct route_match *ret, struct error *err);

/*
 * The request object of a control method: the body of a REST request, which may be NULL, and the
 * names of its path. Takes the reference to body. -EINVAL: the body is no object.
 */
int route_request(const struct route_match *m, json_t *body, json_t **ret, struct error *err);
/* REST's form of an answer object. Takes the reference and gives one. */
json_t *route_answer(const struct route_row *row, json_t *answer);
