/*
 * Why a list is empty: what the program did not do, or what was not recorded and which option
 * records it.  For weir report --only and weir flame.
 */
#ifndef WEIR_REPORT_ABSENT_H
#define WEIR_REPORT_ABSENT_H

#include "model/report.h"

/* Of a section of the report, or a list that is made when it is asked for: a clause without a full
 * stop.  NULL: nothing is known. */
const char *absent_why(const struct report *r, const char *section);

#endif
