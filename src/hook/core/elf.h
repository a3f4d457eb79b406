/*
 * Finds functions in loaded libraries without dlsym. It allocates nothing, leaves dlerror alone and
 * needs no symbol versions. Another library's dlsym cannot intervene.
 */
#pragma once

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct elf {
	uintptr_t base;
	const Elf64_Sym *symbols;
	const char *strings;
	const char *soname; /* or NULL */
	const uint32_t *gnu_hash, *sysv_hash;
	const Elf64_Dyn *dynamic;
};

/* Reads what the loader has mapped of an object; false when it has no symbols. */
bool elf_read(struct elf *e, uintptr_t base, const Elf64_Dyn *dynamic);

/* The address of a defined function, or NULL. */
void *elf_find(const struct elf *e, const char *name);

/* The first loaded object for which `fits` answers true, in the order of loading. */
bool elf_search(struct elf *ret_e, bool (*fits)(const struct elf *, const void *), const void *arg);

/* The object that holds an address. */
bool elf_of_address(struct elf *ret_e, const void *address);

/* How many objects were loaded and unloaded so far: while that stays, so does what a search finds.
 */
uint64_t elf_changes(void);
