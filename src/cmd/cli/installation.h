/*
 * Says how this Weir came onto the machine, by what lies beside it. Nothing here fails, and any
 * thread may call.
 */
#pragma once

#include <stddef.h>

/* "the portable tree, /opt/weir", or what else it is; a text that does not fit is cut. */
void installation_describe(char *ret_text, size_t size);
