/* C++ names as people write them. */
#pragma once

/* free() it.  NULL: it is no mangled name, or no C++ runtime is here to read it. */
char *cxx_name(const char *mangled);
