/* How the state of the GPUs is printed (model/gpu_state.h).  Internal to src/report; nothing is
 * printed of a trace without samples. */
#ifndef WEIR_REPORT_GPU_TABLE_H
#define WEIR_REPORT_GPU_TABLE_H

#include "base/json.h"
#include "base/table.h"
#include "model/report.h"

void gpu_table_put_text(const struct report *r, const struct text_page *p);

/* The key gpu_state: null without samples. */
void gpu_table_put_json(const struct report *r, struct json *j);

#endif
