/* Writes the devices that a program sees into the trace, and starts predictions for them. */
#ifndef WEIR_HOOK_META_DEVICES_H
#define WEIR_HOOK_META_DEVICES_H

/* After cuInit(), once. */
void devices_describe(void);

#endif
