/* The device sources and the built-in kernels as text: embed.awk makes them. */
#pragma once

#define KERNEL_SOURCES_MOST 16

struct kernel_source {
	const char *name, *text;
};

extern const struct kernel_source kernel_sources[]; /* ends with a NULL */
extern const char kernel_builtin[];                 /* PTX of all plain kernels */
