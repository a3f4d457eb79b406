/* Stores imported texts, processes, threads and functions. */
#include "import/import_store.h"

#include <string.h>

#include "trace/trace.h"

#include "base/digit.h"
#include "base/expect.h"

#define TEXT_MOST  (64u << 10)  /* of one text; a record holds eight times that */
#define TEXTS_MOST (1ull << 30) /* of all: behind that, texts are "(too many texts)" */
#define ID_MOST    0xfeffu      /* ids behind it are meta records */
#define DECLARED   16u          /* ids at the end that are for what importers declare */
#define NAME_MOST  120u         /* of a function */

static uint32_t *text_slot(struct map *m, const char *text, size_t bytes)
{
	return map_get(m, map_text_key(text, bytes, 0));
}

uint32_t store_string(struct store *s, const char *text, size_t bytes)
{
	static const char many[] = "(too many texts)";
	if (s->string_bytes > TEXTS_MOST) {
		text = many;
		bytes = sizeof many - 1;
	}
	bytes = MIN(bytes, TEXT_MOST);
	uint32_t *id = text_slot(&s->string_map, text, bytes);
	if (*id == MAP_NONE) {
		char *copy = xmalloc(bytes + 1);
		struct store_string *new = array_push(&s->strings);
		memcpy(copy, text, bytes);
		copy[bytes] = '\0';
		*new = (struct store_string){ copy, (uint32_t)bytes };
		s->string_bytes += bytes + sizeof *new + sizeof(struct map_slot);
		*id = (uint32_t)s->strings.n;
	}
	expect(*id && *id <= s->strings.n, "the number of a text is one of all");
	return *id;
}

uint32_t store_process(struct store *s, uint64_t key, uint32_t pid)
{
	const struct store_process *p = MAP_ROW(
		&s->process_map, MAP_KEY(key), &s->processes, (struct store_process){ .pid = pid });
	return (uint32_t)(p - s->processes.v);
}

uint32_t store_thread(struct store *s, uint32_t process, uint64_t key, uint32_t tid)
{
	expect(process < s->processes.n, "the process of a thread is one of all");
	const struct store_thread *t = MAP_ROW(&s->thread_map, MAP_KEY(process, key), &s->threads,
		(struct store_thread){ .process = process, .tid = tid });
	return (uint32_t)(t - s->threads.v);
}

/* CUPTI names the version in a runtime function's name: cudaLaunchKernel_v7000. */
static size_t without_version(const char *name, size_t bytes)
{
	size_t n = bytes;
	while (n && is_digit(name[n - 1]))
		n--;
	return bytes - n >= 4 && n > 2 && name[n - 1] == 'v' && name[n - 2] == '_' ? n - 2 : bytes;
}

/* ..., and the flavour of its default stream: cudaMemcpyAsync_ptsz. */
static size_t without_flavour(const char *name, size_t bytes)
{
	const bool has = bytes > 5 && (!memcmp(name + bytes - 5, "_ptsz", 5) ||
					      !memcmp(name + bytes - 5, "_ptds", 5));
	return has ? bytes - 5 : bytes;
}

static uint32_t known_function(const struct store *s, const char *name, size_t bytes)
{
	const size_t bare = without_version(name, bytes);
	const size_t lengths[] = { bytes, bare, without_flavour(name, bare) };
	for (int i = 0; i < 3; i++) {
		const uint32_t fn = map_find(&s->function_map, map_text_key(name, lengths[i], 0));
		if (fn != MAP_NONE)
			return fn;
	}
	return MAP_NONE;
}

bool store_knows_function(const struct store *s, const char *name, size_t bytes)
{
	return known_function(s, name, bytes) != MAP_NONE;
}

static void add_schema_text(struct store *s, const char *text, size_t bytes)
{
	array_reserve(&s->schema_text, bytes);
	memcpy(s->schema_text.v + s->schema_text.n, text, bytes);
	s->schema_text.n += bytes;
}

/* A name as a line of the schema may have it. */
static size_t clean_name(char *clean, const char *name, size_t bytes)
{
	size_t n = MIN(bytes, NAME_MOST);
	for (size_t i = 0; i < n; i++)
		clean[i] = name[i] > ' ' && name[i] != '(' && name[i] < 127 ? name[i] : '_';
	if (!n)
		clean[n++] = '?';
	return n;
}

/* Functions of other makers' runtimes are named like CUDA's: hipMemcpyAsync,
 * zeEventHostSynchronize. */
static const char *class_of(const char *name)
{
	static const char *const words[][2] = { { "Launch", "launch" }, { "Memcpy", "copy" },
		{ "MemoryCopy", "copy" }, { "Memset", "set" }, { "MemoryFill", "set" },
		{ "Malloc", "memory" }, { "Free", "memory" }, { "Synchronize", "sync" },
		{ "Event", "event" }, { "Stream", "stream" } };
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strstr(name, words[i][0]))
			return words[i][1];
	return "other";
}

static uint32_t new_function(struct store *s, const char *name, size_t bytes)
{
	char clean[NAME_MOST + 1], line[NAME_MOST + 64];
	if (s->next_fn > ID_MOST - DECLARED)
		return ID_MOST - DECLARED;
	const size_t length = clean_name(clean, name, bytes);
	clean[length] = '\0';
	const bool runtime = bytes < 3 || memcmp(name, "cu", 2) != 0 || !memcmp(name, "cuda", 4);
	const int n = snprintf(line, sizeof line, "%u %s %s call %s()\n", s->next_fn,
		runtime ? "runtime" : "driver", class_of(clean), clean);
	add_schema_text(s, line, (size_t)n);
	return s->next_fn++;
}

uint16_t store_function(struct store *s, const char *name, size_t bytes)
{
	uint32_t fn = known_function(s, name, bytes);
	if (fn == MAP_NONE) {
		fn = new_function(s, name, bytes);
		*text_slot(&s->function_map, name, bytes) = fn;
	}
	expect(fn <= ID_MOST, "a function is not numbered as a meta record");
	return (uint16_t)fn;
}

uint16_t store_declare(struct store *s, const char *line)
{
	char text[256];
	const int n = snprintf(text, sizeof text, "%u %s\n", s->next_fn, line);
	if (expect(n > 0 && (size_t)n < sizeof text, "a declaration fits into its line") &&
		expect(s->next_fn <= ID_MOST, "a function is not numbered as a meta record"))
		add_schema_text(s, text, (size_t)n);
	return (uint16_t)s->next_fn++;
}

void store_call_with(
	struct store *s, const struct store_call *call, const uint64_t *args, uint8_t count)
{
	if (s->args.n > UINT32_MAX - count) {
		s->overflown = true;
		return;
	}
	struct store_call *c = array_push(&s->calls);
	*c = *call;
	c->arg_count = count;
	c->first_arg = (uint32_t)s->args.n;
	array_reserve(&s->args, count);
	memcpy(s->args.v + s->args.n, args, count * sizeof *args);
	s->args.n += count;
}

static void index_functions(struct store *s)
{
	for (uint32_t i = 0; i < s->schema.fn_count; i++) {
		const struct schema_fn *fn = &s->schema.fns[i];
		uint32_t *slot = text_slot(&s->function_map, fn->name, strlen(fn->name));
		if (*slot == MAP_NONE)
			*slot = fn->id;
		if (fn->id >= s->next_fn)
			s->next_fn = fn->id + 1u;
	}
}

int store_init(struct store *s)
{
	*s = (struct store){ .next_fn = 1 };
	const int e = schema_load(&s->schema, schema_text, schema_text_bytes, &s->schema_memory);
	if (!e)
		add_schema_text(s, schema_text, schema_text_bytes);
	if (!e)
		index_functions(s);
	return e;
}

void store_fini(struct store *s)
{
	for (size_t i = 0; i < s->strings.n; i++)
		free(s->strings.v[i].text);
	array_free(&s->calls, &s->args, &s->ranges, &s->activities, &s->links, &s->threads,
		&s->processes, &s->strings);
	array_free(&s->devices, &s->schema_text);
	map_fini(&s->process_map, &s->thread_map, &s->string_map, &s->function_map);
	free(s->schema_memory);
	s->schema_memory = NULL;
}
