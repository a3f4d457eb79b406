/* ELF by its sections: the dynamic symbols that have no section are what the object calls. */
#include "engine/torch_object.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>

/* The symbols and their names, and the dynamic section and the same names. */
struct object {
	char *v;
	size_t n;
	const Elf64_Shdr *symbols, *dynamic;
};

static bool inside(const struct object *o, uint64_t at, uint64_t bytes)
{
	return at <= o->n && bytes <= o->n - at;
}

/* Aligned and whole, with its text that ends with NUL. */
static bool is_sound(const struct object *o, const Elf64_Shdr *s, uint64_t each,
	const Elf64_Shdr *list, uint64_t sections)
{
	if (!s || s->sh_link >= sections || s->sh_offset % 8 ||
		!inside(o, s->sh_offset, s->sh_size) || s->sh_size % each)
		return false;
	const Elf64_Shdr *text = &list[s->sh_link];
	return inside(o, text->sh_offset, text->sh_size) && text->sh_size &&
	       !o->v[text->sh_offset + text->sh_size - 1];
}

static int read_object(const struct buf *b, struct object *o, const Elf64_Shdr **ret_list)
{
	*o = (struct object){ .v = b->v, .n = b->n };
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)b->v;
	if (b->n < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
		head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB ||
		head->e_type != ET_DYN || head->e_shentsize != sizeof(Elf64_Shdr) ||
		head->e_shoff % 8 ||
		!inside(o, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr)))
		return -EINVAL;
	const Elf64_Shdr *list = (const Elf64_Shdr *)(const void *)(b->v + head->e_shoff);
	for (unsigned i = 0; i < head->e_shnum; i++) {
		if (list[i].sh_type == SHT_DYNSYM)
			o->symbols = &list[i];
		if (list[i].sh_type == SHT_DYNAMIC)
			o->dynamic = &list[i];
	}
	if (!is_sound(o, o->symbols, sizeof(Elf64_Sym), list, head->e_shnum) ||
		!is_sound(o, o->dynamic, sizeof(Elf64_Dyn), list, head->e_shnum))
		return -EINVAL;
	*ret_list = list;
	return 0;
}

static int open_object(
	const struct buf *b, struct object *o, const Elf64_Shdr **ret_list, struct error *err)
{
	const int e = read_object(b, o, ret_list);
	return e ? error_set(err, e, "it is no shared object of 64 bits") : 0;
}

/* "": the name is not among the texts. */
static char *text_at(const struct object *o, const Elf64_Shdr *text, uint64_t at)
{
	return o->v + text->sh_offset + (at < text->sh_size ? at : text->sh_size - 1);
}

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* "": symbol i is defined. */
static char *undefined(const struct object *o, const Elf64_Shdr *list, uint64_t i)
{
	const Elf64_Sym *s = (const Elf64_Sym *)(const void *)(o->v + o->symbols->sh_offset) + i;
	return text_at(
		o, &list[o->symbols->sh_link], s->st_shndx == SHN_UNDEF ? s->st_name : UINT64_MAX);
}

static bool is_called(const char *name)
{
	return begins(name, "aoti_") || begins(name, "cuda");
}

static uint64_t symbols_of(const struct object *o)
{
	return o->symbols->sh_size / sizeof(Elf64_Sym);
}

int torch_object_calls(const struct buf *object, struct torch_calls *ret, struct error *err)
{
	struct object o;
	const Elf64_Shdr *list;
	const int e = open_object(object, &o, &list, err);
	for (uint64_t i = 0; !e && i < symbols_of(&o); i++) {
		const char *name = undefined(&o, list, i);
		if (is_called(name))
			*array_push(&ret->name) = name;
		ret->catches |= strcmp(name, "__gxx_personality_v0") == 0;
	}
	return e;
}

/* A model may have a C++ runtime in it.  Its unique symbols would be one for all models of the
 * process, and the rest of the runtime one for each: they don't fit each other. */
static void make_own(const struct object *o, uint64_t i)
{
	Elf64_Sym *s = (Elf64_Sym *)(void *)(o->v + o->symbols->sh_offset) + i;
	if (s->st_shndx != SHN_UNDEF && ELF64_ST_BIND(s->st_info) == STB_GNU_UNIQUE)
		s->st_info = ELF64_ST_INFO(STB_GLOBAL, ELF64_ST_TYPE(s->st_info));
}

int torch_object_rename(struct buf *object, struct error *err)
{
	struct object o;
	const Elf64_Shdr *list;
	const int e = open_object(object, &o, &list, err);
	if (e)
		return e;
	for (uint64_t i = 0; i < symbols_of(&o); i++) {
		char *name = undefined(&o, list, i);
		if (is_called(name))
			memcpy(name, "weir", 4);
		make_own(&o, i);
	}
	Elf64_Dyn *d = (Elf64_Dyn *)(void *)(o.v + o.dynamic->sh_offset);
	for (uint64_t i = 0; i < o.dynamic->sh_size / sizeof *d; i++) {
		const char *name = text_at(&o, &list[o.dynamic->sh_link], d[i].d_un.d_val);
		/* The loader ignores this one in a shared object. */
		if (d[i].d_tag == DT_NEEDED && (begins(name, "libtorch") || begins(name, "libc10")))
			d[i].d_tag = DT_DEBUG;
	}
	return 0;
}
