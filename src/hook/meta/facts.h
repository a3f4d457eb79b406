/*
 * Each condition of a recording that this process knows becomes a record META_FACT, "KEY VALUE".
 * Reports repeat these words.
 */
#pragma once

/* Weir's version, the level and which part of the run is recorded: with the first call of a
 * process. */
void facts_of_recording(void);

/* The versions of the driver and of its CUDA: when the driver is there. */
void facts_of_driver(void);
