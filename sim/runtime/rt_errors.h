/*
 * The names of cudaError, generated from api/enums.tbl.  NULL where a code has none.
 */
#pragma once

const char *rt_error_name(int code);
const char *rt_error_text(int code);
