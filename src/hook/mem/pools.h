/* The memory that the driver's own pools keep. */
#pragma once

#include "hook/sched/member.h"

/* Has the pools of a device give back what is idle and beyond the quota. */
void pools_trim(struct member *m);

/* The graphs' memory may have changed: a launch, or a free of what no call has allocated. */
void graphs_changed(void);

void pools_forget(void);
