/*
 * libweir-audit.so is loaded through LD_AUDIT for programs that load CUDA with RTLD_DEEPBIND or
 * dlmopen. The loader tells an auditor of each symbol, even if a lookup passes every preloaded
 * library. This one asks weir_bound_by_audit() in libweir.so and keeps only that function's
 * address.
 *
 * The auditor declines in a program with ThreadSanitizer. There the loader would call the program's
 * calloc() before the sanitizer is ready. It also declines where glibc is older than 2.35. With any
 * auditor, dlmopen() crashes in glibc 2.31, and on arm64 functions are called without x8 and the
 * upper halves of q0 to q7.
 */
#include <fcntl.h>
#include <link.h>
#include <string.h>

#include "base/sys.h"
#include "hook/core/elf.h"

#define VERSION 2u /* of the interface, since glibc 2.35 */

typedef void *bound_by_audit_fn(const char *name, void *real, const void *map);
static bound_by_audit_fn *bound_by_audit;
static const struct link_map *hook;

#define PUBLIC __attribute__((visibility("default")))
PUBLIC unsigned la_version(unsigned version);
PUBLIC unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie);
PUBLIC void la_preinit(uintptr_t *cookie);
PUBLIC uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *reference,
	uintptr_t *definition, unsigned *flags, const char *name);

/* The program's headers: the loader has mapped it, and tells nobody yet.  They are the loader's own
 * where the loader was started with the program as its argument. */
static uint32_t read_headers(const Elf64_Phdr **ret_headers)
{
	Elf64_auxv_t aux[64] = { 0 };
	uint32_t count = 0;
	const long fd = sys(openat, AT_FDCWD, "/proc/self/auxv", O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return 0;
	sys(read, fd, aux, sizeof aux);
	sys(close, fd);
	for (size_t i = 0; i < sizeof aux / sizeof *aux; i++) {
		if (aux[i].a_type == AT_PHDR)
			*ret_headers = (const Elf64_Phdr *)aux[i].a_un.a_val;
		if (aux[i].a_type == AT_PHNUM)
			count = (uint32_t)aux[i].a_un.a_val;
	}
	return *ret_headers ? count : 0;
}

static bool read_program(struct elf *ret_e)
{
	const Elf64_Phdr *headers = NULL, *dynamic = NULL;
	const uint32_t count = read_headers(&headers);
	uintptr_t base = 0;
	bool has_base = false;
	for (uint32_t i = 0; i < count; i++) {
		if (headers[i].p_type == PT_PHDR) {
			base = (uintptr_t)headers - headers[i].p_vaddr;
			has_base = true;
		}
		if (headers[i].p_type == PT_DYNAMIC)
			dynamic = &headers[i];
	}
	return has_base && dynamic &&
	       elf_read(ret_e, base, (const Elf64_Dyn *)(base + dynamic->p_vaddr));
}

/* gcc links ThreadSanitizer as a library, clang puts it into the program. */
static bool has_thread_sanitizer(void)
{
	struct elf e;
	if (!read_program(&e))
		return false;
	for (const Elf64_Dyn *d = e.dynamic; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && !strncmp(e.strings + d->d_un.d_val, "libtsan.so", 10))
			return true;
	return elf_find(&e, "__tsan_init") != NULL;
}

unsigned la_version(unsigned version)
{
	return version < VERSION || has_thread_sanitizer() ? 0 : VERSION;
}

unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	*cookie = (uintptr_t)map;
	const char *slash = strrchr(map->l_name, '/');
	if (space == LM_ID_BASE && !strcmp(slash ? slash + 1 : map->l_name, "libweir.so"))
		hook = map;
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

/* Everything that the program was started with has been relocated: libweir.so may be called. */
void la_preinit(uintptr_t *cookie)
{
	struct elf e;
	if (hook && elf_read(&e, hook->l_addr, hook->l_ld))
		bound_by_audit = (bound_by_audit_fn *)elf_find(&e, "weir_bound_by_audit");
}

/* CUPTI makes calls for a tool, not for the program. */
static int is_tool(const struct link_map *map)
{
	return strstr(map->l_name, "/libcupti.so") != NULL;
}

/* Bindings to libweir.so itself are right as they are. */
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *reference,
	uintptr_t *definition, unsigned *flags, const char *name)
{
	const struct link_map *map = (const struct link_map *)*definition;
	if (!bound_by_audit || map == hook ||
		(strncmp(name, "cu", 2) && strncmp(name, "__cuda", 6)))
		return symbol->st_value;
	if (is_tool((const struct link_map *)*reference))
		return symbol->st_value;
	return (uintptr_t)bound_by_audit(name, (void *)symbol->st_value, map);
}
