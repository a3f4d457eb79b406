/*
 * The names of cudaError, generated from api/enums.tbl.  NULL where a code has none.
 */
#ifndef SIM_RT_ERRORS_H
#define SIM_RT_ERRORS_H

const char *rt_error_name(int code);
const char *rt_error_text(int code);

#endif
