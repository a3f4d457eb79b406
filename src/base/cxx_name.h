/* C++ names as people write them. */
#ifndef WEIR_BASE_CXX_NAME_H
#define WEIR_BASE_CXX_NAME_H

/* free() it.  NULL: it is no mangled name, or no C++ runtime is here to read it. */
char *cxx_name(const char *mangled);

#endif
