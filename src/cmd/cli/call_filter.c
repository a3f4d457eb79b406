/* Parses the filters of weir trace and matches calls with them. */
#include "cmd/cli/call_filter.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cli/values.h"

#define NOT_READY 600

static bool word_fits(const char *word, const struct schema_fn *fn, const struct record *r)
{
	if (!strcmp(word, "error"))
		return r && r->result && r->result != NOT_READY && fn->kind != CALL_STATUS;
	return !strcmp(word, fn->class) || !fnmatch(word, fn->name, 0);
}

static bool word_is_known(const struct schema *s, const char *word)
{
	if (!strcmp(word, "error"))
		return true;
	for (uint32_t i = 0; i < s->fn_count; i++)
		if (word_fits(word, &s->fns[i], NULL))
			return true;
	return false;
}

static int add_word(struct call_filter *f, const struct schema *schema, const char *word)
{
	const bool exclude = *word == '!';
	word += exclude;
	if (!word_is_known(schema, word))
		return complain(EXIT_USAGE,
			"-e '%s' fits no CUDA call. Give names (cuMem*), classes (launch, memory, copy …) or error",
			word);
	*array_push(&f->words) = (struct filter_word){ .word = xstrdup(word), .exclude = exclude };
	f->any_include |= !exclude;
	return 0;
}

static int take_words(struct call_filter *f, const struct schema *schema, const struct options *o)
{
	int code = 0;
	for (int i = 0; !code && opt_nth(o, "expression", i); i++) {
		char *list = xstrdup(opt_nth(o, "expression", i)), *rest = list;
		for (char *word; !code && (word = strsep(&rest, ","));)
			code = add_word(f, schema, word);
		free(list);
	}
	return code;
}

int call_filter_take(struct call_filter *f, const struct schema *schema, const struct options *o)
{
	const char *longer = opt_str(o, "longer");
	if (longer && !duration_parse(longer, &f->least_ns))
		return complain(EXIT_USAGE,
			"--longer=%s is no time. Give a number with its unit: 10us, for example",
			longer);
	f->options = o;
	return take_words(f, schema, o);
}

void call_filter_fini(struct call_filter *f)
{
	for (size_t i = 0; i < f->words.n; i++)
		free(f->words.v[i].word);
	array_free(&f->words);
}

bool call_filter_function(
	const struct call_filter *f, const struct schema_fn *fn, const struct record *r)
{
	bool yes = !f->any_include;
	for (size_t i = 0; i < f->words.n; i++)
		if (word_fits(f->words.v[i].word, fn, r)) {
			if (f->words.v[i].exclude)
				return false;
			yes = true;
		}
	return yes;
}

static bool name_fits(const char *pattern, const char *name)
{
	return name && (strpbrk(pattern, "*?[") ? !fnmatch(pattern, name, 0)
						: strstr(name, pattern) != NULL);
}

bool call_filter_kernel(const struct call_filter *f, const char *mangled, const char *demangled)
{
	const char *name;
	for (int i = 0; (name = opt_nth(f->options, "kernel", i)); i++)
		if (name_fits(name, mangled) || name_fits(name, demangled))
			return true;
	return !opt_nth(f->options, "kernel", 0);
}

bool call_filter_process(const struct call_filter *f, uint32_t pid, const char *program)
{
	char number[16];
	const char *slash = program ? strrchr(program, '/') : NULL;
	snprintf(number, sizeof number, "%u", pid);
	const char *process;
	for (int i = 0; (process = opt_nth(f->options, "process", i)); i++)
		if (!strcmp(process, number) ||
			(program && !strcmp(process, slash ? slash + 1 : program)))
			return true;
	return !opt_nth(f->options, "process", 0);
}
