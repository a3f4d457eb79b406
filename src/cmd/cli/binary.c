/* See binary.h.  The file is somebody else's: every offset in it is checked before it is used. */
#include "cmd/cli/binary.h"

#include "base/cpu.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

struct image {
	const uint8_t *bytes;
	size_t size;
};

/* The n bytes at offset, or NULL when the file has not so many. */
static const void *part(const struct image *f, uint64_t offset, uint64_t n)
{
	return offset <= f->size && n <= f->size - offset ? f->bytes + offset : NULL;
}

/* A text that ends within the file, or NULL. */
static const char *text(const struct image *f, uint64_t offset)
{
	const char *s = part(f, offset, 1);
	return s && memchr(s, 0, f->size - offset) ? s : NULL;
}

static const Elf64_Phdr *segment(const struct image *f, const Elf64_Ehdr *e, int i)
{
	if (i >= e->e_phnum || e->e_phentsize != sizeof(Elf64_Phdr))
		return NULL;
	return part(f, e->e_phoff + (uint64_t)i * sizeof(Elf64_Phdr), sizeof(Elf64_Phdr));
}

/* The place in the file of the byte at an address; the file's size if there is none. */
static uint64_t file_offset(const struct image *f, const Elf64_Ehdr *e, uint64_t address)
{
	const Elf64_Phdr *p;
	for (int i = 0; (p = segment(f, e, i)); i++)
		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
			address - p->p_vaddr < p->p_filesz)
			return p->p_offset + (address - p->p_vaddr);
	return f->size;
}

static void take_library(struct binary *b, const char *name)
{
	if (!strncmp(name, "libcudart.so", 12))
		snprintf(b->runtime, sizeof b->runtime, "%s", name);
	if (!strncmp(name, "libcuda.so", 10))
		b->needs_driver = true;
	if (!strncmp(name, "libtsan.so", 10))
		b->needs_tsan = true;
}

static void read_dynamic(
	const struct image *f, const Elf64_Ehdr *e, const Elf64_Phdr *p, struct binary *b)
{
	const Elf64_Dyn *d = part(f, p->p_offset, p->p_filesz);
	size_t n = d ? p->p_filesz / sizeof *d : 0;
	uint64_t strings = f->size;
	for (size_t i = 0; i < n; i++)
		if (d[i].d_tag == DT_STRTAB)
			strings = file_offset(f, e, d[i].d_un.d_ptr);
	for (size_t i = 0; i < n && d[i].d_tag != DT_NULL; i++) {
		const char *name;
		if (d[i].d_tag != DT_NEEDED || d[i].d_un.d_val > f->size)
			continue;
		name = text(f, strings + d[i].d_un.d_val);
		if (name)
			take_library(b, name);
	}
}

static void read_segments(const struct image *f, const Elf64_Ehdr *e, struct binary *b)
{
	const Elf64_Phdr *p;
	const char *name;
	b->kind = BINARY_STATIC;
	for (int i = 0; (p = segment(f, e, i)); i++) {
		if (p->p_type == PT_INTERP && (name = text(f, p->p_offset))) {
			b->kind = BINARY_DYNAMIC;
			snprintf(b->interpreter, sizeof b->interpreter, "%s", name);
		}
		if (p->p_type == PT_DYNAMIC)
			read_dynamic(f, e, p, b);
	}
}

/* Device code stands in sections that nvcc names. */
static void read_sections(const struct image *f, const Elf64_Ehdr *e, struct binary *b)
{
	const Elf64_Shdr *s, *names;
	if (e->e_shentsize != sizeof *s)
		return;
	names = part(f, e->e_shoff + (uint64_t)e->e_shstrndx * sizeof *s, sizeof *s);
	for (int i = 0; names && i < e->e_shnum; i++) {
		const char *name;
		s = part(f, e->e_shoff + (uint64_t)i * sizeof *s, sizeof *s);
		name = s ? text(f, names->sh_offset + s->sh_name) : NULL;
		if (name && (!strcmp(name, ".nv_fatbin") || !strcmp(name, ".nvFatBinSegment")))
			b->has_kernels = true;
	}
}

static void read_script(const struct image *f, struct binary *b)
{
	const char *line = (const char *)f->bytes + 2;
	size_t n = f->size - 2, begin = 0, end;
	b->kind = BINARY_SCRIPT;
	while (begin < n && (line[begin] == ' ' || line[begin] == '\t'))
		begin++;
	for (end = begin; end < n && !memchr(" \t\n", line[end], 3);)
		end++;
	snprintf(b->interpreter, sizeof b->interpreter, "%.*s", (int)(end - begin), line + begin);
}

static void read_image(const struct image *f, struct binary *b)
{
	const Elf64_Ehdr *e = part(f, 0, sizeof *e);
	b->kind = BINARY_UNKNOWN;
	if (f->size >= 2 && !memcmp(f->bytes, "#!", 2)) {
		read_script(f, b);
		return;
	}
	if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG))
		return;
	b->kind = BINARY_FOREIGN;
	if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != CPU_MACHINE)
		return;
	read_segments(f, e, b);
	read_sections(f, e, b);
}

static int look_at(struct binary *b)
{
	int fd = open(b->path, O_RDONLY | O_CLOEXEC);
	struct image f = { 0 };
	struct stat st;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		close(fd);
		return -errno;
	}
	b->privileged = (st.st_mode & (S_ISUID | S_ISGID)) ||
			fgetxattr(fd, "security.capability", NULL, 0) > 0;
	if (st.st_size > 0)
		f.bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (!f.bytes || f.bytes == MAP_FAILED) {
		b->kind = BINARY_UNKNOWN;
		return 0;
	}
	f.size = (size_t)st.st_size;
	read_image(&f, b);
	munmap((void *)f.bytes, f.size);
	return 0;
}

static bool runnable(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

static int find(const char *program, char *ret_path)
{
	const char *at = getenv("PATH");
	if (strchr(program, '/')) {
		snprintf(ret_path, PATH_MAX, "%s", program);
		return access(program, F_OK) ? -errno : runnable(program) ? 0 : -EACCES;
	}
	while (at) {
		int n = (int)strcspn(at, ":");
		snprintf(ret_path, PATH_MAX, "%.*s/%s", n ? n : 1, n ? at : ".", program);
		if (runnable(ret_path))
			return 0;
		at = at[n] ? at + n + 1 : NULL;
	}
	return -ENOENT;
}

int binary_look(const char *program, struct binary *ret_b)
{
	struct binary b = { 0 };
	int rc = find(program, b.path);
	if (!rc)
		rc = look_at(&b);
	if (!rc)
		*ret_b = b;
	return rc;
}

const char *binary_why_closed(const struct binary *b)
{
	if (b->kind != BINARY_DYNAMIC && b->kind != BINARY_STATIC)
		return NULL;
	if (b->privileged)
		return "gains rights when it starts (setuid, setgid or file capabilities): the dynamic linker ignores LD_PRELOAD";
	if (b->kind == BINARY_STATIC)
		return "is linked statically: nothing can be loaded into it";
	return strstr(b->interpreter, "/ld-musl-")
		       ? "is linked to musl: the injected library needs glibc"
		       : NULL;
}
