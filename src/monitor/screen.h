/*
 * The screen of weir top: the GPUs, then a table of programs, drawn anew after each look and each
 * key.  It uses what room the terminal has, from 80 columns on, and less where there is less.
 */
#pragma once

#include "monitor/watch.h"

/* Until q is pressed; look() makes the view anew.  0, what look() failed with, or -ENOSYS: built
 * without ncurses, -ENOTTY: there is no terminal that it knows. */
int screen_run(const struct watch *w, int (*look)(void *data), void *data, int interval_ms);
