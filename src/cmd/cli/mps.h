/*
 * Starts NVIDIA's Multi-Process Service for the programs of one directory, so that they are
 * resident on a GPU together. It has its own pipes, so no other program is affected, and the
 * compute mode stays. It ends with the last weir run of the directory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mps {
	bool is_latency; /* of the program */
	double percent;  /* of the SMs, that it may use at most; 0: all */
	uint32_t sms;    /* the same as a number */
	int users;       /* a lock that each weir run shares; 0: none */
	char pipes[600], log[600], starting[600];
};

/* Starts it where it is not running, and sets the environment for the program.  False when it is
 * not there or not wanted, after a sentence that says what that costs. */
bool mps_start(struct mps *m, const char *directory, bool isolated);

void mps_stop(struct mps *m);
