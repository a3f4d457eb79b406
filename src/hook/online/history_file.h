/*
 * The files of the predictions: launches learnt in earlier runs, and the model. They are read at
 * the start and by the thread that delivers device times. They are written at an orderly end, with
 * system calls alone.
 */
#pragma once

#include <stddef.h>

#include "hook/online/online.h"

/* Fills p's tables and finds its model; p stays where it is. */
void history_file_start(
	struct predict *p, const struct predict_config *o, const struct predict_device *d);

/* Takes a model that is new, when it is no worse on these launches; else a note says why not. */
void history_file_look(struct predict *p, const struct predict_sample *recent, size_t n);

void history_file_forget(void); /* after a fork */
