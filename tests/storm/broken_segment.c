/*
 * The shared file with one rule broken, for a weir that the storm has to find out: nobody is ever
 * known to be dead, so that slots of the killed do not come back.
 */
#include <errno.h>

#undef ESRCH
#define ESRCH 4095 /* that no system call answers */
#include "share/segment.c"
