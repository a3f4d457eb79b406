/* Parses the filters of weir trace and matches calls with them. */
#include "cmd/cli/call_filter.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
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

#define TAKE_ALL(list, o, name)                                                                    \
	({                                                                                         \
		int code_ = 0;                                                                     \
		for (int i_ = 0; !code_ && opt_nth(o, name, i_); i_++) {                           \
			const char **to_ = array_push(list);                                       \
			if (to_)                                                                   \
				*to_ = opt_nth(o, name, i_);                                       \
			else                                                                       \
				code_ = complain(EXIT_ENVIRONMENT, "no memory");                   \
		}                                                                                  \
		code_;                                                                             \
	})

int call_filter_take(struct call_filter *f, const struct schema *schema, const struct options *o)
{
	const char *longer = opt_str(o, "longer");
	if (longer && !duration_parse(longer, &f->least_ns))
		return complain(EXIT_USAGE,
			"--longer=%s is no time. Give a number with its unit: 10us, for example",
			longer);
	int code = take_words(f, schema, o);
	code = code ? code : TAKE_ALL(&f->kernels, o, "kernel");
	return code ? code : TAKE_ALL(&f->processes, o, "process");
}

void call_filter_fini(struct call_filter *f)
{
	for (size_t i = 0; i < f->words.n; i++)
		free(f->words.v[i].word);
	array_free(&f->words);
	array_free(&f->kernels);
	array_free(&f->processes);
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
	for (size_t i = 0; i < f->kernels.n; i++)
		if (name_fits(f->kernels.v[i], mangled) || name_fits(f->kernels.v[i], demangled))
			return true;
	return !f->kernels.n;
}

bool call_filter_process(const struct call_filter *f, uint32_t pid, const char *program)
{
	char number[16];
	const char *slash = program ? strrchr(program, '/') : NULL;
	snprintf(number, sizeof number, "%u", pid);
	for (size_t i = 0; i < f->processes.n; i++)
		if (!strcmp(f->processes.v[i], number) ||
			(program && !strcmp(f->processes.v[i], slash ? slash + 1 : program)))
			return true;
	return !f->processes.n;
}
