/*
 * Control messages between protobuf and JSON, by the table api/infer.tbl alone.
 *
 * A message is an object whose keys are the fields, a repeated field an array, a map an object, an
 * enum the name of its value, and bytes are base64. Fields that were not sent are absent. Messages
 * that the table calls plain (InferParameter, settings) are the value itself. Any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/* Unknown fields are skipped. -EINVAL: the bytes are no such message. The name is one of the
 * table's, in which no message holds itself, so nesting is bounded. */
int message_read(
	const char *message_name, const char *bytes, size_t n, json_t **ret, struct error *err);
/* Appends the message; keys that it does not have are left out. -EINVAL: a value is of a wrong
 * type, and what was appended is taken back. */
int message_put(const char *message_name, const json_t *value, struct buf *b, struct error *err);
/* Whether the message has a field of that name. */
bool message_has(const char *message_name, const char *field);
