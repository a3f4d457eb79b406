/* Finds the source lines of addresses. */
#include "stack/lines.h"

#include <string.h>

#include "base/cxx_name.h"

/* The place of an address: from the table of lines, then outwards from where functions were put in.
 * */
struct place {
	const char *function, *file;
	uint32_t line;
};

static const char *name_of(const struct libdw *dw, Dwarf_Die *die)
{
	static const unsigned linkage[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	Dwarf_Attribute attribute;
	for (int i = 0; i < 2; i++)
		if (dw->dwarf_attr_integrate(die, linkage[i], &attribute))
			return dw->dwarf_formstring(&attribute);
	return dw->dwarf_attr_integrate(die, DW_AT_name, &attribute)
		       ? dw->dwarf_formstring(&attribute)
		       : NULL;
}

static uint64_t number_of(const struct libdw *dw, Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;
	if (!dw->dwarf_attr(die, name, &attribute) || dw->dwarf_formudata(&attribute, &value))
		return 0;
	return value;
}

/* The file and line where a function was put into the one around it. */
static void set_call(const struct libdw *dw, Dwarf_Die *unit, Dwarf_Die *die, struct place *to)
{
	Dwarf_Files *files;
	size_t count;
	const uint64_t file = number_of(dw, die, DW_AT_call_file);
	to->line = (uint32_t)number_of(dw, die, DW_AT_call_line);
	if (!dw->dwarf_getsrcfiles(unit, &files, &count) && file < count)
		to->file = dw->dwarf_filesrc(files, file, NULL, NULL);
}

/* The functions around the address, innermost first; p[0] has its line already. */
static int find_scopes(struct line_finder *l, Dwfl_Module *m, uint64_t address, struct place *p)
{
	const struct libdw *dw = l->dw;
	Dwarf_Addr bias;
	Dwarf_Die *inner = NULL, *scopes = NULL, *unit = dw->dwfl_module_addrdie(m, address, &bias);
	int count = unit ? dw->dwarf_getscopes(unit, address - bias, &inner) : 0;
	int n = 0;
	/* Around a function that was put in, those are where it was written: asked again, where it
	 * is. */
	count = count > 0 ? dw->dwarf_getscopes_die(&inner[0], &scopes) : 0;
	for (int i = 0; i < count && n < LINES_INLINED; i++) {
		const int tag = dw->dwarf_tag(&scopes[i]);
		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		p[n++].function = name_of(dw, &scopes[i]);
		if (tag == DW_TAG_subprogram)
			break;
		if (n < LINES_INLINED)
			set_call(dw, unit, &scopes[i], &p[n]);
	}
	free_all(inner, scopes);
	return n;
}

/* As people write it. */
static const char *keep_name(struct stacks *s, const char *name)
{
	char *plain = name ? cxx_name(name) : NULL;
	name = plain ? plain : name ? name : "";
	const char *kept = stacks_text(s, name, strlen(name));
	free(plain);
	return kept;
}

static uint32_t add_place(struct stacks *s, const struct place *p, const char *module)
{
	const char *file = p->file ? p->file : "";
	const struct stack_frame f = { .function = keep_name(s, p->function),
		.module = module,
		.file = stacks_text(s, file, strlen(file)),
		.line = p->line,
		.kind = CALLER_NATIVE };
	return stacks_add_frame(s, &f);
}

int line_find(struct line_finder *l, struct stacks *s, uint64_t address, const char *module,
	uint32_t frames[LINES_INLINED])
{
	const struct libdw *dw = l->dw;
	struct place p[LINES_INLINED] = { 0 };
	Dwfl_Module *m = dw->dwfl_addrmodule(l->dwfl, address);
	Dwfl_Line *line = m ? dw->dwfl_module_getsrc(m, address) : NULL;
	int number = 0, e = 0;
	if (line)
		p[0].file = dw->dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
	p[0].line = number > 0 ? (uint32_t)number : 0;
	int n = m ? find_scopes(l, m, address, p) : 0;
	if (!n || !p[n - 1].function) {
		n = n ? n : 1;
		p[n - 1].function = m ? dw->dwfl_module_addrname(m, address) : NULL;
	}
	for (int i = 0; i < n && !e; i++)
		frames[i] = add_place(s, &p[i], module);
	return e ? e : n;
}
