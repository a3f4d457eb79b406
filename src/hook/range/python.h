/* The functions that python/weir finds by their names (python.c), as far as the hook knows them.
 */
#ifndef WEIR_HOOK_RANGE_PYTHON_H
#define WEIR_HOOK_RANGE_PYTHON_H

void python_forget(void); /* after a fork: numbers begin anew */

#endif
