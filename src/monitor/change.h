/* Changes that weir monitor makes for who may ask for them, weir sched and weir ctl. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "event/format.h"
#include "share/segment.h"

/* The number of a process; 0: the text is none. */
uint32_t change_pid(const char *text);

/*
 * 0, or with a sentence in err:
 *	-EINVAL: there is no such class, policy or thing to be switched to
 *	-ESRCH: there is no such process, or it does not share, or is not recorded
 *	-EPERM: it is another user's
 *	-EBUSY: its recording has ended
 * f: NULL: nobody shares.
 */
int change_class(struct share_file *f, uint32_t pid, const char *class, struct error *err);
int change_policy(struct share_file *f, const char *policy, struct error *err);
int change_recording(uint32_t pid, const char *to, struct error *err);
int change_header(struct trace_header *h, const char *to, struct error *err);
