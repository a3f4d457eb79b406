/* Standing in front of CUPTI for other tools in the program: see cupti_proxy.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hook/time/cupti_shared.h"

/* dlsym's answer instead of CUPTI's function: ours in front of it, or the same. */
void *cupti_proxy_answer(const char *name, void *real);

/* Exported, in CUPTI's own names. */
int cuptiActivityRegisterCallbacks(share_request *request, share_complete *complete);
int cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void));
int cuptiActivityEnable(int kind);
int cuptiActivityEnableAndDump(int kind);
int cuptiActivityDisable(int kind);
int cuptiActivityEnableContext(void *context, int kind);
int cuptiActivityDisableContext(void *context, int kind);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret_dropped);
int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value);
int cuptiActivityFlushAll(uint32_t forced);
int cuptiFinalize(void);
