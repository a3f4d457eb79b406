/* The functions of libdw and libelf that are used, looked up when they are first needed. */
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>

#define LIBDW_FUNCTIONS(X)                                                                         \
	X(dwfl_begin)                                                                              \
	X(dwfl_end)                                                                                \
	X(dwfl_report_begin)                                                                       \
	X(dwfl_report_end)                                                                         \
	X(dwfl_report_elf)                                                                         \
	X(dwfl_standard_find_debuginfo)                                                            \
	X(dwfl_attach_state)                                                                       \
	X(dwfl_getthread_frames)                                                                   \
	X(dwfl_thread_state_registers)                                                             \
	X(dwfl_thread_state_register_pc)                                                           \
	X(dwfl_frame_pc)                                                                           \
	X(dwfl_addrmodule)                                                                         \
	X(dwfl_module_addrname)                                                                    \
	X(dwfl_module_addrdie)                                                                     \
	X(dwfl_module_getsrc)                                                                      \
	X(dwfl_module_info)                                                                        \
	X(dwfl_lineinfo)                                                                           \
	X(dwarf_getscopes)                                                                         \
	X(dwarf_getscopes_die)                                                                     \
	X(dwarf_diename)                                                                           \
	X(dwarf_tag)                                                                               \
	X(dwarf_attr_integrate)                                                                    \
	X(dwarf_formstring)                                                                        \
	X(dwarf_attr)                                                                              \
	X(dwarf_formudata)                                                                         \
	X(dwarf_getsrcfiles)                                                                       \
	X(dwarf_filesrc)                                                                           \
	X(dwelf_elf_gnu_build_id)                                                                  \
	X(elf_version)                                                                             \
	X(elf_begin)                                                                               \
	X(elf_end)                                                                                 \
	X(elf_getphdrnum)                                                                          \
	X(elf64_getphdr)

struct libdw {
#define MEMBER(name) __typeof__(&name) name;
	LIBDW_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* NULL: it is not there, and *ret_why says which or what of it. */
const struct libdw *libdw_open(const char **ret_why);
