/* In the archive, NAME/data/aotinductor/MODEL/ has the shared object, the images of its kernels and
 * an object of JSON that says the device. */
#include "engine/torch_package.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/archive.h"

#define MODELS   "data/aotinductor/"
#define METADATA "_metadata.json"
#define DEVICE   "\"AOTI_DEVICE_KEY\""

static bool ends(struct slice s, const char *with)
{
	const size_t n = strlen(with);
	return s.n >= n && memcmp(s.at + s.n - n, with, n) == 0;
}

/* The last part, if the file is in the folder of a model; else nothing. */
static struct slice name_in_model(struct slice path)
{
	const char *at = memmem(path.at, path.n, MODELS, strlen(MODELS));
	if (!at || memchr(path.at, 0, path.n))
		return (struct slice){ NULL, 0 };
	const char *end = path.at + path.n;
	at += strlen(MODELS);
	const char *slash = memchr(at, '/', (size_t)(end - at));
	if (!slash || memchr(slash + 1, '/', (size_t)(end - slash - 1)) || slash + 1 == end)
		return (struct slice){ NULL, 0 };
	return (struct slice){ slash + 1, (size_t)(end - slash - 1) };
}

static int make_folder(struct torch_package *p, struct error *err)
{
	const char *at = getenv("TMPDIR");
	p->folder = xasprintf("%s/weir-torch-XXXXXX", at && *at ? at : "/tmp");
	if (mkdtemp(p->folder))
		return 0;
	const int e = -errno;
	error_set(err, e, "%s can't be made: %s", p->folder, strerror(-e));
	free(p->folder);
	p->folder = NULL;
	return e;
}

static int write_file(
	struct torch_package *p, struct slice name, const struct buf *b, struct error *err)
{
	char *path = xasprintf("%s/%.*s", p->folder, (int)name.n, name.at);
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int e = fd < 0 ? -errno : 0;
	for (size_t done = 0; !e && done < b->n;) {
		const ssize_t n = write(fd, b->v + done, b->n - done);
		if (n < 0 && errno != EINTR)
			e = -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	if (e)
		error_set(err, e, "%s can't be written: %s", path, strerror(-e));
	if (fd >= 0)
		*array_push(&p->file) = path;
	else
		free(path);
	return e;
}

/* {"AOTI_DEVICE_KEY": "cuda", ...} */
static int check_device(const struct archive *a, const struct archive_file *f, struct error *err)
{
	struct buf b = { 0 };
	int e = archive_unpack(a, f, &b, err);
	const char *key = e ? NULL : memmem(b.v, b.n, DEVICE, strlen(DEVICE));
	const char *value = key ? key + strlen(DEVICE) : NULL;
	while (value && value < b.v + b.n && strchr(": \t\n", *value))
		value++;
	const size_t left = value ? (size_t)(b.v + b.n - value) : 0;
	if (value && (left < 6 || memcmp(value, "\"cuda\"", 6)))
		e = error_set(err, -EINVAL,
			"it was compiled for another device than cuda, and Weir runs it on a GPU alone");
	buf_free(&b);
	return e;
}

/* Sources and what tells of the model stay in the archive. */
static bool is_needed(struct slice name)
{
	return !ends(name, ".cpp") && !ends(name, ".json") && !ends(name, ".o") &&
	       !ends(name, ".txt") && name.n < 200;
}

static int unpack_file(struct torch_package *p, const struct archive *a,
	const struct archive_file *f, struct error *err)
{
	const struct slice name = name_in_model(f->name);
	if (!name.n)
		return 0;
	if (ends(name, METADATA))
		return check_device(a, f, err);
	if (ends(name, ".so"))
		return p->object.n ? error_set(err, -EINVAL, "it has several shared objects")
				   : archive_unpack(a, f, &p->object, err);
	if (!is_needed(name))
		return 0;
	struct buf b = { 0 };
	int e = archive_unpack(a, f, &b, err);
	e = e ? e : write_file(p, name, &b, err);
	buf_free(&b);
	return e;
}

static int unpack(struct torch_package *p, struct slice bytes, struct error *err)
{
	struct archive a;
	int e = archive_read(&a, bytes, err);
	for (size_t i = 0; i < a.file.n && !e; i++)
		e = unpack_file(p, &a, &a.file.v[i], err);
	archive_free(&a);
	if (!e && !p->object.n)
		e = error_set(err, -EINVAL, "it has no shared object in " MODELS);
	p->kernels = p->folder;
	return e;
}

int torch_package_open(
	struct torch_package *p, const struct buf *file, const char *path, struct error *err)
{
	*p = (struct torch_package){ 0 };
	const int e = make_folder(p, err);
	if (e)
		return e;
	if (file->n < 4 || memcmp(file->v, "\177ELF", 4) != 0)
		return unpack(p, buf_slice(file), err);
	buf_put(&p->object, file->v, file->n);
	const char *slash = strrchr(path, '/');
	p->kernels = p->beside =
		xstrndup(slash ? path : ".", slash && slash > path ? (size_t)(slash - path) : 1);
	return 0;
}

int torch_package_write_object(
	struct torch_package *p, const char *name, const char **ret, struct error *err)
{
	const int e = write_file(p, (struct slice){ name, strlen(name) }, &p->object, err);
	*ret = e ? NULL : p->file.v[p->file.n - 1];
	return e;
}

void torch_package_close(struct torch_package *p)
{
	for (size_t i = 0; i < p->file.n; i++) {
		unlink(p->file.v[i]);
		free(p->file.v[i]);
	}
	array_free(&p->file);
	if (p->folder)
		rmdir(p->folder);
	free_all(p->folder, p->beside);
	buf_free(&p->object);
	*p = (struct torch_package){ 0 };
}

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
