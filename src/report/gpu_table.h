/*
 * Prints the state of the GPUs (model/gpu_state.h), and nothing for a trace without samples.
 * Internal to src/report.
 */
#ifndef WEIR_REPORT_GPU_TABLE_H
#define WEIR_REPORT_GPU_TABLE_H

#include "base/table.h"
#include "model/report.h"

void gpu_table_put_text(const struct report *r, const struct text_page *p);

#endif
