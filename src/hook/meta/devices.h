/* The devices that a program sees, in the trace; predictions begin for them, where they are asked
 * for. */
#ifndef WEIR_HOOK_META_DEVICES_H
#define WEIR_HOOK_META_DEVICES_H

/* After cuInit(), once. */
void devices_describe(void);

#endif
