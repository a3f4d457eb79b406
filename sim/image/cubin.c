/*
 * Cubins: ELF files for the GPU.
 *
 *	symbol table       a kernel is a function whose st_other has bit 0x10
 *	.nv.info           per kernel, by symbol index: registers, stack frame
 *	.nv.info.KERNEL    parameters, launch bounds
 *	.nv.shared.KERNEL  its size is the static shared memory (from sm_90 on with 1 024
 *	                   bytes of the system's in front)
 *	.nv.global(.init)  variables, .nv.constant3: constants; objects in the symbol table
 *
 * An .nv.info section is a list of { u8 format, u8 attribute, u16 value or size, … }.
 */
#include "image/image.h"
#include "sim_enums.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { ABI_8 = 8, KERNEL_BIT = 0x10, SYSTEM_SHARED = 1024 };

enum { FORMAT_SIZED = 4 }; /* the others are four bytes in all */

enum {
	ATTR_MAX_THREADS = 0x05,
	ATTR_FRAME = 0x11,
	ATTR_PARAM = 0x17,
	ATTR_REGISTERS = 0x2f,
};

struct cubin {
	const uint8_t *data;
	size_t size;
	Elf64_Ehdr header;
	const uint8_t *sections;
	size_t section_count;
	const char *names;
	size_t names_size;
	const uint8_t *symbols;
	size_t symbol_count;
	const char *strings;
	size_t strings_size;
	int arch;
};

static Elf64_Shdr section_at(const struct cubin *c, size_t i)
{
	Elf64_Shdr s;

	memcpy(&s, c->sections + i * sizeof s, sizeof s);
	return s;
}

static Elf64_Sym symbol_at(const struct cubin *c, size_t i)
{
	Elf64_Sym s;

	memcpy(&s, c->symbols + i * sizeof s, sizeof s);
	return s;
}

/* The bytes of a section in the file, or NULL where they are not all there. */
static const uint8_t *bytes_of(const struct cubin *c, const Elf64_Shdr *s)
{
	if (s->sh_type == SHT_NOBITS || s->sh_offset > c->size ||
		s->sh_size > c->size - s->sh_offset)
		return NULL;
	return c->data + s->sh_offset;
}

/* A string of a table, or NULL where it does not end inside. */
static const char *string_at(const char *table, size_t size, size_t offset)
{
	if (offset >= size || !memchr(table + offset, '\0', size - offset))
		return NULL;
	return table + offset;
}

static const char *section_name(const struct cubin *c, const Elf64_Shdr *s)
{
	const char *name = string_at(c->names, c->names_size, s->sh_name);

	return name ? name : "";
}

static int arch_of(const Elf64_Ehdr *h)
{
	return h->e_ident[EI_ABIVERSION] >= ABI_8 ? (int)(h->e_flags >> 8 & 0xff)
						  : (int)(h->e_flags & 0xff);
}

static bool header_ok(const Elf64_Ehdr *h, size_t size)
{
	return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_machine == 190 &&
	       h->e_shentsize == sizeof(Elf64_Shdr) && h->e_shoff <= size &&
	       h->e_shnum <= (size - h->e_shoff) / sizeof(Elf64_Shdr) && h->e_shstrndx < h->e_shnum;
}

int cubin_capability(const uint8_t *data, size_t size)
{
	Elf64_Ehdr h;

	if (size < sizeof h)
		return -1;
	memcpy(&h, data, sizeof h);
	return header_ok(&h, size) ? arch_of(&h) : -1;
}

/* Everything up to the end of the last section or table. */
size_t cubin_measure(const uint8_t *data)
{
	Elf64_Ehdr h;

	memcpy(&h, data, sizeof h);
	if (h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shoff > UINT32_MAX)
		return 0;
	uint64_t end = h.e_shoff + (uint64_t)h.e_shnum * sizeof(Elf64_Shdr);
	for (size_t i = 0; i < h.e_shnum; i++) {
		Elf64_Shdr s;

		memcpy(&s, data + h.e_shoff + i * sizeof s, sizeof s);
		if (s.sh_type == SHT_NOBITS || s.sh_offset > UINT32_MAX || s.sh_size > UINT32_MAX)
			continue;
		if (s.sh_offset + s.sh_size > end)
			end = s.sh_offset + s.sh_size;
	}
	return end;
}

static bool open_symbols(struct cubin *c)
{
	for (size_t i = 0; i < c->section_count; i++) {
		Elf64_Shdr s = section_at(c, i);

		if (s.sh_type != SHT_SYMTAB)
			continue;
		c->symbols = bytes_of(c, &s);
		c->symbol_count = s.sh_size / sizeof(Elf64_Sym);
		if (!c->symbols || s.sh_link >= c->section_count)
			return false;
		Elf64_Shdr strings = section_at(c, s.sh_link);
		c->strings = (const char *)bytes_of(c, &strings);
		c->strings_size = strings.sh_size;
		return c->strings != NULL;
	}
	return true; /* a cubin without symbols has no kernels */
}

static bool open_cubin(struct cubin *c, const uint8_t *data, size_t size)
{
	*c = (struct cubin){ .data = data, .size = size };
	if (size < sizeof c->header)
		return false;
	memcpy(&c->header, data, sizeof c->header);
	if (!header_ok(&c->header, size))
		return false;
	c->sections = data + c->header.e_shoff;
	c->section_count = c->header.e_shnum;
	Elf64_Shdr names = section_at(c, c->header.e_shstrndx);
	c->names = (const char *)bytes_of(c, &names);
	c->names_size = names.sh_size;
	c->arch = arch_of(&c->header);
	return c->names && open_symbols(c);
}

static int add_kernels(const struct cubin *c, struct image *image)
{
	for (size_t i = 0; i < c->symbol_count; i++) {
		Elf64_Sym s = symbol_at(c, i);
		const char *name = string_at(c->strings, c->strings_size, s.st_name);

		if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || !(s.st_other & KERNEL_BIT) || !name)
			continue;
		struct image_kernel *k = image_add_kernel(image, name, strlen(name));
		if (!k)
			return CUDA_ERROR_OUT_OF_MEMORY;
		k->binary_version = c->arch;
		k->ptx_version = c->arch;
	}
	return 0;
}

static uint8_t *initial_bytes(const struct cubin *c, const Elf64_Shdr *section, const Elf64_Sym *s)
{
	const uint8_t *bytes = bytes_of(c, section);

	if (!bytes || s->st_value > section->sh_size || s->st_size > section->sh_size - s->st_value)
		return NULL;
	uint8_t *copy = malloc(s->st_size);
	return copy ? memcpy(copy, bytes + s->st_value, s->st_size) : NULL;
}

static int add_globals(const struct cubin *c, struct image *image)
{
	for (size_t i = 0; i < c->symbol_count; i++) {
		Elf64_Sym s = symbol_at(c, i);
		const char *name = string_at(c->strings, c->strings_size, s.st_name);

		if (ELF64_ST_TYPE(s.st_info) != STT_OBJECT || !name || !s.st_size ||
			s.st_shndx >= c->section_count)
			continue;
		Elf64_Shdr section = section_at(c, s.st_shndx);
		const char *where = section_name(c, &section);
		if (s.st_size > section.sh_size || (strncmp(where, ".nv.global", 10) != 0 &&
							   strcmp(where, ".nv.constant3") != 0))
			continue;
		struct image_global *g = image_add_global(image, name, strlen(name));
		if (!g)
			return CUDA_ERROR_OUT_OF_MEMORY;
		g->size = s.st_size;
		g->initial = initial_bytes(c, &section, &s);
	}
	return 0;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t x;

	memcpy(&x, p, sizeof x);
	return x;
}

typedef bool attribute_fn(struct image *image, const struct cubin *c, struct image_kernel *k,
	int attribute, const uint8_t *data, size_t size);

/* An attribute of the whole cubin: the kernel is named by its symbol. */
static bool common_attribute(struct image *image, const struct cubin *c,
	struct image_kernel *unused, int attribute, const uint8_t *data, size_t size)
{
	if (size < 8 || get32(data) >= c->symbol_count)
		return true;
	Elf64_Sym s = symbol_at(c, get32(data));
	const char *name = string_at(c->strings, c->strings_size, s.st_name);
	struct image_kernel *k = name ? image_find_kernel(image, name, strlen(name)) : NULL;
	uint32_t value = get32(data + 4);
	if (!k || value > 1 << 20)
		return true;
	if (attribute == ATTR_REGISTERS)
		k->registers = (int)value;
	else if (attribute == ATTR_FRAME)
		k->local_bytes = (int)value;
	return true;
}

static bool kernel_attribute(struct image *image, const struct cubin *c, struct image_kernel *k,
	int attribute, const uint8_t *data, size_t size)
{
	if (attribute == ATTR_PARAM && size >= 12) {
		uint32_t place = get32(data + 4);

		return image_set_param(k, place & 0xffff, place >> 16, get32(data + 8) >> 18);
	}
	if (attribute == ATTR_MAX_THREADS && size >= 12) {
		uint64_t x = get32(data), y = get32(data + 4), z = get32(data + 8);

		if (x && y && z && x <= 1024 && y <= 1024 && z <= 64 && x * y * z <= 1024)
			k->max_threads = (int)(x * y * z);
	}
	return true;
}

static bool walk_info(const struct cubin *c, const Elf64_Shdr *s, struct image *image,
	struct image_kernel *k, attribute_fn *use)
{
	const uint8_t *p = bytes_of(c, s);
	size_t left = s->sh_size;

	if (!p)
		return false;
	while (left >= 4) {
		size_t size = 0;
		int format = p[0];

		if (format == FORMAT_SIZED)
			size = (size_t)(p[2] | p[3] << 8);
		if (size > left - 4)
			return false;
		if (format == FORMAT_SIZED && !use(image, c, k, p[1], p + 4, size))
			return false;
		p += 4 + size;
		left -= 4 + size;
	}
	return true;
}

/* The kernel whose name follows a prefix in a section's name, or NULL. */
static struct image_kernel *kernel_of(struct image *image, const char *section, const char *prefix)
{
	size_t n = strlen(prefix);

	if (strncmp(section, prefix, n) != 0)
		return NULL;
	return image_find_kernel(image, section + n, strlen(section + n));
}

static bool read_section(const struct cubin *c, const Elf64_Shdr *s, struct image *image)
{
	const char *name = section_name(c, s);
	struct image_kernel *k;

	if (strcmp(name, ".nv.info") == 0)
		return walk_info(c, s, image, NULL, common_attribute);
	if ((k = kernel_of(image, name, ".nv.info.")) != NULL)
		return walk_info(c, s, image, k, kernel_attribute);
	if ((k = kernel_of(image, name, ".nv.shared.")) != NULL && s->sh_size < 1 << 20) {
		k->shared_bytes = (int)s->sh_size;
		if (c->arch >= 90 && k->shared_bytes >= SYSTEM_SHARED)
			k->shared_bytes -= SYSTEM_SHARED;
	}
	if ((k = kernel_of(image, name, ".nv.constant2.")) != NULL && s->sh_size <= 65536)
		k->const_bytes = (int)s->sh_size;
	return true;
}

int cubin_parse(const uint8_t *data, size_t size, int capability, struct image *ret_image)
{
	struct cubin c;

	if (!open_cubin(&c, data, size))
		return CUDA_ERROR_INVALID_IMAGE;
	if (c.arch / 10 != capability / 10 || c.arch > capability)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	int r = add_kernels(&c, ret_image);
	if (!r)
		r = add_globals(&c, ret_image);
	for (size_t i = 0; !r && i < c.section_count; i++) {
		Elf64_Shdr s = section_at(&c, i);

		if (!read_section(&c, &s, ret_image))
			r = CUDA_ERROR_INVALID_IMAGE;
	}
	return r;
}
