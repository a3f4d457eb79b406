/* The tree of a flame graph. flame_read.c fills it. */
#include "flame/flame.h"

#include <string.h>

#include "base/expect.h"
#include "base/json.h"
#include "base/text.h"

static uint32_t name_of(struct flame *f, const char *name)
{
	char **row = MAP_ROW(
		&f->name_map, map_text_key(name, strlen(name), 0), &f->names, xstrdup(name));
	return (uint32_t)(row - f->names.v);
}

uint32_t flame_child(struct flame *f, uint32_t parent, enum frame_kind kind, const char *name)
{
	const uint32_t id = name_of(f, name);
	if (!expect(parent == FLAME_NONE || parent < f->nodes.n,
		    "a frame stands in one that is there"))
		return FLAME_NONE;
	if (parent == FLAME_NONE && f->nodes.n)
		return FLAME_NONE;
	uint32_t *index =
		id == FLAME_NONE ? NULL : map_get(&f->node_map, MAP_KEY(parent, id, kind));
	if (!index)
		return FLAME_NONE;
	if (*index != MAP_NONE)
		return *index;
	struct flame_node *new = f->nodes.n < FLAME_NONE ? array_push(&f->nodes) : NULL;
	if (!new)
		return FLAME_NONE;
	*new = (struct flame_node){ .name = id,
		.parent = parent,
		.first_child = FLAME_NONE,
		.next = FLAME_NONE,
		.kind = (uint16_t)kind };
	expect(parent == FLAME_NONE || f->nodes.v[parent].depth < UINT16_MAX,
		"frames are no deeper than can be counted");
	if (parent != FLAME_NONE)
		new->depth = (uint16_t)(f->nodes.v[parent].depth + 1);
	return *index = (uint32_t)(f->nodes.n - 1);
}

void flame_add(struct flame *f, uint32_t node, uint64_t ns)
{
	if (!expect(node < f->nodes.n, "what weighs is one of all frames"))
		return;
	struct flame_node *n = &f->nodes.v[node];
	n->self_ns = sat_add(n->self_ns, ns);
	n->count++;
}

void flame_free(struct flame *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->names.n; i++)
		free(f->names.v[i]);
	array_free(&f->names, &f->nodes);
	map_fini(&f->name_map, &f->node_map);
	free(f);
}

static const struct flame *sorting; /* qsort() hands nothing on, and one thread sorts */

static int smaller_first(const void *one, const void *two)
{
	const struct flame_node *a = &sorting->nodes.v[*(const uint32_t *)one];
	const struct flame_node *b = &sorting->nodes.v[*(const uint32_t *)two];
	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? -1 : 1;
	const int names = strcmp(sorting->names.v[b->name], sorting->names.v[a->name]);
	return names ? names : (int)b->kind - (int)a->kind;
}

static void check(const struct flame *f)
{
	uint64_t self_ns = 0;
	for (size_t i = 0; i < f->nodes.n; i++) {
		const struct flame_node *n = &f->nodes.v[i];
		self_ns = sat_add(self_ns, n->self_ns);
		expect(n->name < f->names.n, "the name of a frame is one of all");
		expect(!i || n->total_ns <= f->nodes.v[n->parent].total_ns,
			"a frame takes no longer than the one around it");
	}
	expect(!f->nodes.n || self_ns == f->nodes.v[0].total_ns, "all frames add up to the root");
}

/* Linked smallest first, so that each list comes out with the largest in front. */
void flame_finish(struct flame *f)
{
	uint32_t *order = xcalloc(f->nodes.n + 1, sizeof *order);
	for (size_t i = f->nodes.n; i-- > 0;) {
		struct flame_node *n = &f->nodes.v[i];
		n->total_ns = sat_add(n->total_ns, n->self_ns);
		n->first_child = n->next = FLAME_NONE;
		if (i && expect(n->parent < i, "frames come after those they stand in")) {
			struct flame_node *p = &f->nodes.v[n->parent];
			p->total_ns = sat_add(p->total_ns, n->total_ns);
		}
	}
	for (size_t i = 0; i < f->nodes.n; i++)
		order[i] = (uint32_t)i;
	sorting = f;
	if (f->nodes.n)
		qsort(order + 1, f->nodes.n - 1, sizeof *order, smaller_first);
	for (size_t i = 1; i < f->nodes.n; i++) {
		const uint32_t at = order[i];
		struct flame_node *n = &f->nodes.v[at], *p = &f->nodes.v[n->parent];
		n->next = p->first_child;
		p->first_child = at;
	}
	free(order);
	check(f);
}

/* A frame ends at a semicolon and a line at its end, so neither may stand in a name. */
static void put_frame(const char *s, FILE *out)
{
	for (const char *end; (end = strchr(s, ';')); s = end + 1) {
		text_put_safe_bytes(out, s, (size_t)(end - s));
		putc(':', out);
	}
	text_put_safe(out, s);
}

#define DEPTH_MOST 1024

static uint32_t path_of(const struct flame *f, uint32_t node, uint32_t *path)
{
	uint32_t n = 0;
	for (uint32_t i = node; i && i != FLAME_NONE && n < DEPTH_MOST; i = f->nodes.v[i].parent)
		path[n++] = i;
	expect(n == f->nodes.v[node].depth, "a frame is as deep as its path is long");
	return n;
}

/* The next node in the order in which a reader meets them: children, then what is beside. */
static uint32_t next_node(const struct flame *f, uint32_t i)
{
	if (f->nodes.v[i].first_child != FLAME_NONE)
		return f->nodes.v[i].first_child;
	while (i != FLAME_NONE && f->nodes.v[i].next == FLAME_NONE)
		i = f->nodes.v[i].parent;
	return i == FLAME_NONE ? FLAME_NONE : f->nodes.v[i].next;
}

void flame_put_folded(const struct flame *f, FILE *out)
{
	uint32_t path[DEPTH_MOST];
	for (uint32_t i = next_node(f, 0); i != FLAME_NONE; i = next_node(f, i)) {
		if (!f->nodes.v[i].self_ns)
			continue;
		for (uint32_t n = path_of(f, i, path); n-- > 0;) {
			put_frame(f->names.v[f->nodes.v[path[n]].name], out);
			if (n)
				putc(';', out);
		}
		fprintf(out, " %llu\n", (unsigned long long)f->nodes.v[i].self_ns);
	}
}

static void put_samples(const struct flame *f, struct json *j)
{
	uint32_t path[DEPTH_MOST];
	json_begin_array(j, "samples");
	for (uint32_t i = next_node(f, 0); i != FLAME_NONE; i = next_node(f, i)) {
		if (!f->nodes.v[i].self_ns)
			continue;
		json_begin_array(j, NULL);
		for (uint32_t n = path_of(f, i, path); n-- > 0;)
			json_u64(j, NULL, f->nodes.v[path[n]].name);
		json_end_array(j);
	}
	json_end_array(j);
	json_begin_array(j, "weights");
	for (uint32_t i = next_node(f, 0); i != FLAME_NONE; i = next_node(f, i))
		if (f->nodes.v[i].self_ns)
			json_u64(j, NULL, f->nodes.v[i].self_ns);
	json_end_array(j);
}

void flame_put_speedscope(const struct flame *f, FILE *out)
{
	struct json j;
	json_init(&j, out);
	json_begin_object(&j, NULL);
	json_str(&j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_str(&j, "exporter", "weir");
	json_str(&j, "name", f->program);
	json_u64(&j, "activeProfileIndex", 0);
	json_begin_object(&j, "shared");
	json_begin_array(&j, "frames");
	for (size_t i = 0; i < f->names.n; i++) {
		json_begin_object(&j, NULL);
		json_str(&j, "name", f->names.v[i]);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	json_begin_array(&j, "profiles");
	json_begin_object(&j, NULL);
	json_str(&j, "type", "sampled");
	json_str(&j, "name",
		f->sampled     ? "time on devices, estimated from samples"
		: f->by_device ? "time on devices"
			       : "time in calls on the host");
	json_str(&j, "unit", "nanoseconds");
	json_u64(&j, "startValue", 0);
	json_u64(&j, "endValue", f->nodes.v[0].total_ns);
	put_samples(f, &j);
	json_end_object(&j);
	json_end_array(&j);
	json_end_object(&j);
}
