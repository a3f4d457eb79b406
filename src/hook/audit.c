/*
 * libweir-audit.so: for LD_AUDIT.  Programs that load CUDA with RTLD_DEEPBIND or dlmopen look
 * symbols up past every preloaded library; the loader still tells an auditor.  This one keeps
 * nothing but the address of weir_caught() in libweir.so, and asks it.
 */
#include <link.h>
#include <string.h>

#include "hook/elf.h"

typedef void *caught_fn(const char *name, void *real, const void *map);
static caught_fn *caught;
static const struct link_map *guest;

unsigned la_version(unsigned version);
unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie);
void la_preinit(uintptr_t *cookie);
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *reference,
	uintptr_t *definition, unsigned *flags, const char *name);

unsigned la_version(unsigned version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	*cookie = (uintptr_t)map;
	const char *slash = strrchr(map->l_name, '/');
	if (space == LM_ID_BASE && !strcmp(slash ? slash + 1 : map->l_name, "libweir.so"))
		guest = map;
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

/* Everything that the program was started with has been relocated: libweir.so may be called. */
void la_preinit(uintptr_t *cookie)
{
	struct elf e;
	if (guest && elf_read(&e, guest->l_addr, guest->l_ld))
		caught = (caught_fn *)elf_find(&e, "weir_caught");
}

/* What CUPTI does for whoever uses it is not the program's doing. */
static int is_tool(const struct link_map *map)
{
	return strstr(map->l_name, "/libcupti.so") != NULL;
}

/* Bindings to libweir.so itself are right as they are. */
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *reference,
	uintptr_t *definition, unsigned *flags, const char *name)
{
	const struct link_map *map = (const struct link_map *)*definition;
	if (!caught || map == guest || (strncmp(name, "cu", 2) && strncmp(name, "__cuda", 6)))
		return symbol->st_value;
	if (is_tool((const struct link_map *)*reference))
		return symbol->st_value;
	return (uintptr_t)caught(name, (void *)symbol->st_value, map);
}
