/* When device times begin and what collects them: see device_times.c. */
#pragma once

/* Before a call that may end a context: what has completed is collected. */
void device_times_collect(void);

/* Completed work is in the trace afterwards, also work that CUPTI would hand out later by itself.
 */
void device_times_hand_out(void);
