/*
 * The fields of a model's configuration, as api/config.tbl lists them, and a configuration that is
 * being read. Both forms, text and JSON, become a tree of JSON with protobuf's names.
 */
#pragma once

#include <stddef.h>

#include "base/slice.h"
#include "store/model_config.h"

enum config_field_kind {
	KIND_MESSAGE,
	KIND_STRING,
	KIND_BOOL,
	KIND_INT32,
	KIND_UINT32,
	KIND_INT64,
	KIND_UINT64,
	KIND_SHAPE, /* int64, many */
	KIND_DOUBLE,
	KIND_ENUM,
	KIND_DTYPE,
};
enum config_label { LABEL_ONE, LABEL_ONEOF, LABEL_MANY, LABEL_MAP, LABEL_LEVELS };
enum config_use { USE_USED, USE_KEPT, USE_IGNORED, USE_REFUSED };

struct config_field {
	const char *name;
	enum config_field_kind kind;
	enum config_label label;
	enum config_use use;
	const char *why;                      /* it is ignored or refused */
	const struct config_message *message; /* NULL: one whose fields nobody knows */
	const char *const *values;            /* of an enum */
	bool placed, counted;                 /* at and count_at are valid */
	size_t at, count_at;                  /* in the structure of the message */
};

struct config_message {
	const char *name;
	const struct config_field *fields; /* the last one has no name */
	size_t bytes;                      /* of its structure; 0: it has none */
};

extern const struct config_message config_ModelConfig, config_Weir;

/* The place of a value, for messages about it. */
struct config_place {
	const json_t *value;
	unsigned line;
};

struct config_reader {
	const char *file;
	struct buf *warnings;
	struct error *err;
	const char *at, *end; /* of text */
	unsigned line;        /* 0: what is read has no lines */
	ARRAY(struct config_place) places;
};

/* -EINVAL, and "FILE:LINE: " before the sentence. */
int config_fail(struct config_reader *r, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The field of that name, if not "did you mean". */
int config_find_field(struct config_reader *r, const struct config_message *m, struct slice name,
	const struct config_field **ret);

/* Puts a value, whose reference it takes, into the tree of its message. key: of a map. */
int config_add(struct config_reader *r, const struct config_message *m,
	const struct config_field *f, json_t *tree, const char *key, json_t *value);

/* Values of one field as JSON; NULL: it is no such value, and *err says so. */
json_t *config_whole(
	struct config_reader *r, const struct config_field *f, bool negative, uint64_t magnitude);
json_t *config_word(struct config_reader *r, const struct config_field *f, struct slice word);
json_t *config_string(
	struct config_reader *r, const struct config_field *f, const char *bytes, size_t n);
json_t *config_default(const struct config_field *f);

/* Reads the text of a message up to `close`, 0: the end, into tree. */
int config_read_text(
	struct config_reader *r, const struct config_message *m, char close, json_t *tree);

/* Reads text that is one value of the field, or several with commas between them. */
int config_read_value(struct config_reader *r, const struct config_message *m,
	const struct config_field *f, json_t *tree);

int config_read_json(struct config_reader *r, const struct config_message *m, const json_t *object,
	json_t *tree);

/* Fills the structure from the tree. */
void config_bind(
	struct model_config *c, const struct config_message *m, const json_t *tree, void *to);

/* 0: it has none. */
unsigned config_line_of(const struct config_reader *r, const json_t *value);

/* Checks the rules that one field alone does not show. */
int config_check(struct config_reader *r, struct model_config *c);
