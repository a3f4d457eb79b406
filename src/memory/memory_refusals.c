/* Allocations that a quota refused (weir run --memory), from the marks that the injected library
 * left.  Their text may be anybody's: what can't be read is passed over.  See memory.h. */
#include "memory/memory.h"

#define MARK_NAME "memory refused by the quota"

static const char *text_of(const struct report *r, uint32_t process, uint32_t id)
{
	const uint32_t name = meta_find_string(&r->meta, process, id);
	return name == META_NONE ? "" : r->meta.names.v[name].text;
}

/* Behind `word`; false: it isn't there. */
static bool number_after(const char **at, const char *word, uint64_t *ret)
{
	char *end;
	const char *p = strstr(*at, word);
	if (!p)
		return false;
	p += strlen(word);
	errno = 0;
	*ret = strtoull(p, &end, 10);
	*at = end;
	return *p >= '0' && *p <= '9' && !errno;
}

/* "pid=1 program=NAME holds=2": a name may have blanks. */
static bool read_holder(const char **at, struct refusal_holder *ret)
{
	uint64_t pid;
	if (!number_after(at, "pid=", &pid) || strncmp(*at, " program=", 9) != 0)
		return false;
	const char *name = *at + 9, *end = strstr(name, " holds=");
	const size_t n = end ? (size_t)(end - name) : 0;
	if (!end || n >= sizeof ret->program)
		return false;
	memcpy(ret->program, name, n);
	ret->program[n] = 0;
	ret->pid = (uint32_t)pid;
	return number_after(at, " holds=", &ret->bytes);
}

static bool read_refusal(const char *text, struct refusal *ret)
{
	*ret = (struct refusal){ 0 };
	if (!number_after(&text, "asked=", &ret->asked) ||
		!number_after(&text, "quota=", &ret->quota) ||
		!number_after(&text, "used=", &ret->used) ||
		!number_after(&text, "contexts=", &ret->contexts))
		return false;
	while (ret->holders < REFUSAL_HOLDERS && read_holder(&text, &ret->holder[ret->holders]))
		ret->holders++;
	return true;
}

static void take(struct refusals *to, const struct refusal *x)
{
	if (!to->count++ || x->ticks < to->first.ticks)
		to->first = *x;
	if (to->count == 1 || x->asked > to->largest.asked)
		to->largest = *x;
}

static bool was_any(const struct report *r)
{
	for (size_t i = 0; i < r->meta.names.n; i++)
		if (!strcmp(r->meta.names.v[i].text, MARK_NAME))
			return true;
	return false;
}

int memory_refusals(const struct report *r, struct refusals *ret)
{
	struct cursor at = { .t = r->trace };
	struct refusal x;
	*ret = (struct refusals){ 0 };
	for (struct range g; was_any(r) && trace_next_range(&at, &g);) {
		const uint32_t process = at.ref->process;
		if (strcmp(text_of(r, process, g.name), MARK_NAME) != 0 ||
			!read_refusal(text_of(r, process, g.args), &x))
			continue;
		x.ticks = g.ticks;
		take(ret, &x);
	}
	return at.error;
}
