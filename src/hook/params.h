/*
 * The arguments of kernel launches (weir record --args): where the parameters of each function
 * lie, asked of the driver after its first launch and remembered by handle, and reading them
 * after the driver has.
 *
 * Nothing allocates: layouts stand in a fixed room and are never moved or freed, so a launch on
 * one thread may read one while another thread learns.  When the room is used up, functions
 * that come later keep no arguments.  Arguments are read after the driver has answered with
 * success, in the call of the program that owns them: what is read, the driver has read.
 */
#ifndef WEIR_HOOK_PARAMS_H
#define WEIR_HOOK_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "event/args.h"

/*
 * What a launch of this function that has succeeded was given, by kernelParams or extra.  Words
 * for a record; 0 when nothing is known about it.
 */
uint32_t params_read(
	uint64_t function, void *const *params, void *const *extra, struct launch_args *ret_args);

/* The handle has been given out: it may be another function's than it was. */
void params_renew(uint64_t function);

/* Functions are about to go: none of the handles can be relied on. */
void params_renew_all(void);

void params_forget(void); /* after a fork */

#endif
