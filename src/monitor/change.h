/* Changes that weir monitor makes for who may ask for them: what weir sched does. */
#ifndef WEIR_MONITOR_CHANGE_H
#define WEIR_MONITOR_CHANGE_H

#include <stdint.h>

#include "share/segment.h"

/* 0; -EINVAL: no such class or policy; -ESRCH: no such program, or nobody shares (f NULL). */
int change_class(struct share_file *f, uint32_t pid, const char *class);
int change_policy(struct share_file *f, const char *policy);

#endif
