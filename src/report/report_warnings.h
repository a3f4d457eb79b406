/* Sentences about what a recording lacks, or what of it is damaged. */
#pragma once

#include "model/report.h"

/* Fills r->warnings.  Returns 0. */
int warnings_make(struct report *r);
void warnings_free(struct report *r);
