/* A refusal, in the recording: how much was asked for, and who held what. */
#pragma once

#include "hook/sched/member.h"

/* Also counts it. */
void refusal_count(const struct member *m, uint64_t bytes);
void refusal_report(const struct member *m, uint64_t bytes);
