/* Whether the state of a law holds together: NULL, or what is broken. */
#pragma once

#include "law/law.h"

const char *law_check(const struct law *law);
