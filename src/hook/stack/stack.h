/*
 * Copies a piece of the stack and the registers when a call has returned and has a record.
 * src/stack unwinds the pieces when the program has ended.
 *
 * Nothing here allocates, locks or touches errno, and no read can fault. The main thread's own
 * stack is mapped to its end. The kernel reads any other stack (process_vm_readv) and stops at an
 * unmapped page. A piece without room is counted in the header.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "event/format.h"
#include "fn_ids.h"

/* For a call that keeps its stack; its record is filled but for the arguments. */
void stack_take(uint32_t fn, const struct record *call);

/* Before a call of the runtime, which takes what calls of the driver inside it do: looks what is
 * mapped if it is time, so that they need not.  Returns when the call begins. */
uint64_t stack_look(uint64_t ticks);

void stack_start(void);
void stack_forget(void);
void stack_unloaded(void);

/* mappings.c knows which file's code is where. */

/* Looks what is mapped, and writes what is new; unless `now`, only when hook_hot.look says so. */
void mappings_look(uint64_t ticks, bool now);
void mappings_forget(void);

/* Whether an address is in the main thread's own stack, and where that ends. */
bool mappings_main_stack(uintptr_t at, uintptr_t *ret_end);

/* Copies what can be read of this process: how many bytes, from the first on. */
uint32_t read_mapped(void *to, uintptr_t from, uint32_t bytes);

/* frames.c reads Python's frames. */

#define PYTHON_FRAMES 128u

/* How many words the frames of a sample may take: 0 when they are not read. */
uint32_t frames_most(void);

/* The frames of this thread's interpreter, innermost first, as STACK_PYTHON_… has them: how many;
 * *ret_more: there are others. */
uint32_t frames_read(uint64_t *to, uint32_t most, bool *ret_more);
void frames_forget(void);
