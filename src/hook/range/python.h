/* The functions that python/weir finds by their names (python.c), as far as the hook knows them.
 */
#pragma once

void python_forget(void); /* after a fork: numbers begin anew */
