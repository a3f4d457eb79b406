/*
 * Fuzzes the conditions of weir report --filter: the input is an expression.  One that is accepted
 * says the same when it is written anew, and never has half an operator for a value.
 */
#include "report/select_filter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_again(const struct select_filter *f)
{
	static const char *const ops[] = { "!~", "!=", ">=", "<=", "=", ">", "<", "~" };
	struct select_filters again = { 0 };
	struct error err = { .text = "" };
	const bool number = isfinite(f->value);
	const char *mark = number ? "" : strchr(f->text, '"') ? "'" : "\"";
	char *text;
	if (!number && strchr(f->text, *mark))
		return; /* both quotation marks are in it */
	must(asprintf(&text, "%s %s %s%s%s", f->key, ops[f->op], mark, f->text, mark) > 0);
	must(!select_filters_parse(&again, (const char *const[]){ text }, 1, &err));
	must(!strcmp(again.v->key, f->key) && again.v->op == f->op);
	must(!strcmp(again.v->text, f->text));
	select_filters_free(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct select_filters f = { 0 };
	struct error err = { .text = "" };
	const struct value values[] = { value_null(), value_u64(1), value_real(0.5),
		value_text("gemm") };
	if (!text)
		return 0;
	if (select_filters_parse(&f, (const char *const[]){ text }, 1, &err)) {
		must(*err.text);
	} else {
		must(*f.v->key && !strpbrk(f.v->key, " !=<>~"));
		must(*f.v->text || strpbrk(text, "\"'"));
		must(!*f.v->text || strchr("\"'", text[strlen(text) - 1]) ||
			strcmp(f.v->text, "=") != 0);
		for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
			select_filter_passes(f.v, &values[i]);
		check_again(f.v);
	}
	select_filters_free(&f);
	free(text);
	return 0;
}
