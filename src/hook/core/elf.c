/* Reading the symbol tables that the loader has mapped: see elf.h. */
#include "hook/core/elf.h"

#include <string.h>

bool elf_read(struct elf *e, uintptr_t base, const Elf64_Dyn *dynamic)
{
	*e = (struct elf){ .base = base, .dynamic = dynamic };
	uintptr_t soname = 0;
	bool named = false;
	for (const Elf64_Dyn *d = dynamic; d->d_tag != DT_NULL; d++) {
		/* glibc relocates these in place, the vDSO's it leaves as offsets */
		const uintptr_t at = d->d_un.d_ptr < base ? base + d->d_un.d_ptr : d->d_un.d_ptr;
		switch (d->d_tag) {
		case DT_SYMTAB:
			e->symbols = (const Elf64_Sym *)at;
			break;
		case DT_STRTAB:
			e->strings = (const char *)at;
			break;
		case DT_GNU_HASH:
			e->gnu_hash = (const uint32_t *)at;
			break;
		case DT_HASH:
			e->sysv_hash = (const uint32_t *)at;
			break;
		case DT_SONAME:
			soname = d->d_un.d_val;
			named = true;
			break;
		default:
			break;
		}
	}
	if (named && e->strings)
		e->soname = e->strings + soname;
	return e->symbols && e->strings && (e->gnu_hash || e->sysv_hash);
}

static void *defined(const struct elf *e, uint32_t index, const char *name)
{
	const Elf64_Sym *s = &e->symbols[index];
	const unsigned type = ELF64_ST_TYPE(s->st_info);
	if (s->st_shndx == SHN_UNDEF || !s->st_value || (type != STT_FUNC && type != STT_NOTYPE))
		return NULL;
	if (strcmp(e->strings + s->st_name, name) != 0)
		return NULL;
	return (void *)(e->base + s->st_value);
}

/*
 * The GNU hash section: bucket count, first hashed symbol, Bloom words, shift; the Bloom
 * filter; a symbol index a bucket; a hash a symbol, bit 0 set on the last of a chain.
 */
static void *find_gnu(const struct elf *e, const char *name)
{
	uint32_t h = 5381;
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		h = h * 33 + *p;
	const uint32_t buckets = e->gnu_hash[0], first = e->gnu_hash[1], words = e->gnu_hash[2];
	if (!buckets || !words)
		return NULL;
	const uint64_t *bloom = (const uint64_t *)(e->gnu_hash + 4);
	const uint64_t mask = 1ull << h % 64 | 1ull << (h >> e->gnu_hash[3]) % 64;
	if ((bloom[h / 64 % words] & mask) != mask)
		return NULL;
	const uint32_t *bucket = (const uint32_t *)(bloom + words);
	const uint32_t *chain = bucket + buckets;
	uint32_t i = bucket[h % buckets];
	if (i < first)
		return NULL;
	for (;; i++) {
		const uint32_t other = chain[i - first];
		void *found = (other | 1) == (h | 1) ? defined(e, i, name) : NULL;
		if (found || other & 1)
			return found;
	}
}

static void *find_sysv(const struct elf *e, const char *name)
{
	uint32_t h = 0;
	for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
		h = (h << 4) + *p;
		h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
	}
	const uint32_t buckets = e->sysv_hash[0];
	if (!buckets)
		return NULL;
	const uint32_t *bucket = e->sysv_hash + 2, *chain = bucket + buckets;
	for (uint32_t i = bucket[h % buckets]; i; i = chain[i]) {
		void *found = defined(e, i, name);
		if (found)
			return found;
	}
	return NULL;
}

void *elf_find(const struct elf *e, const char *name)
{
	return e->gnu_hash ? find_gnu(e, name) : find_sysv(e, name);
}

struct search {
	struct elf *e;
	bool (*fits)(const struct elf *, const void *);
	const void *arg;
	const void *address;
};

static const Elf64_Dyn *dynamic_of(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const Elf64_Dyn *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return NULL;
}

static int try_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	const Elf64_Dyn *dynamic = dynamic_of(info);
	return dynamic && elf_read(s->e, info->dlpi_addr, dynamic) && s->fits(s->e, s->arg);
}

bool elf_search(struct elf *ret_e, bool (*fits)(const struct elf *, const void *), const void *arg)
{
	struct elf e;
	struct search s = { .e = &e, .fits = fits, .arg = arg };
	if (!dl_iterate_phdr(try_object, &s))
		return false;
	*ret_e = e;
	return true;
}

static int holds_address(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *p = &info->dlpi_phdr[i];
		const uintptr_t from = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && (uintptr_t)s->address - from < p->p_memsz) {
			const Elf64_Dyn *dynamic = dynamic_of(info);
			return dynamic && elf_read(s->e, info->dlpi_addr, dynamic) ? 1 : -1;
		}
	}
	return 0;
}

bool elf_of_address(struct elf *ret_e, const void *address)
{
	struct elf e;
	struct search s = { .e = &e, .address = address };
	if (dl_iterate_phdr(holds_address, &s) != 1)
		return false;
	*ret_e = e;
	return true;
}

static int first_changes(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(uint64_t *)arg = info->dlpi_adds + info->dlpi_subs;
	return 1;
}

uint64_t elf_changes(void)
{
	uint64_t changes = 0;
	dl_iterate_phdr(first_changes, &changes);
	return changes;
}
