/*
 * Fuzzes model configurations: the input is config.pbtxt or, from a brace on, the JSON of a load
 * request. A configuration that is read and printed is read again as the same.
 */
#include "store/model_config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const struct model_config *c)
{
	struct model_config *again = NULL;
	struct buf warnings = { 0 };
	json_t *first = config_json(c);
	if (config_from_json(first, "again", &again, &warnings, NULL))
		abort();
	json_t *second = config_json(again);
	if (!json_equal(first, second))
		abort();
	json_decref(first);
	json_decref(second);
	config_free(again);
	buf_free(&warnings);
}

/* Whatever it says, it is completed or contradicted in a sentence. */
static void complete(struct model_config *c)
{
	struct tensor_spec in = { (char[]){ "INPUT0" }, DTYPE_FP32, { 2, { -1, 16 } }, false };
	struct tensor_spec out = { (char[]){ "OUTPUT0" }, DTYPE_BYTES, { 1, { -1 } }, true };
	struct error err = { .text = "" };
	if (config_complete(c, &in, 1, &out, 1, &err) ? !*err.text : c->inputs != 1)
		abort();
	if (!*err.text)
		check_same(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model_config *c = NULL;
	struct buf warnings = { 0 };
	struct error err = { .text = "" };
	json_t *object = NULL;
	int e;
	if (size && *data == '{') {
		object = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
		if (!object)
			return 0;
		e = config_from_json(object, "fuzz", &c, &warnings, &err);
	} else {
		e = config_read((const char *)data, size, "fuzz", &c, &warnings, &err);
	}
	if (e ? c || !*err.text : !c || *err.text)
		abort();
	if (c) {
		check_same(c);
		complete(c);
	}
	config_free(c);
	buf_free(&warnings);
	json_decref(object);
	return 0;
}
