/*
 * The arrivals of each model and class with a deadline: how often, how soon it must be answered,
 * and how much of the device it asks for. Requests that are still to come need room too: work that
 * can wait must not fill the time that they will need, nor a long batch bar them.
 */
#pragma once

#include <stdint.h>

struct batch_traffic {
	double rate;      /* requests in a nanosecond, lately */
	double within_ns; /* between arrival and deadline, lately */
	double load;      /* share of the device, in batches of full size */
	uint64_t last_ns;
};

struct batcher;
struct batch_model;

/* A request arrived; each_ns is its share of a full batch. */
void traffic_note(struct batch_traffic *t, uint64_t now, double within_ns, double each_ns);
/* Forgets arrivals that stopped: looks at one model each time. */
void traffic_age(struct batcher *b, uint64_t now);
/*
 * Device time to keep free for requests of the class and higher ones that come later than a request
 * of the model, and are due before it, within so many ns: `caution` times what they will ask for,
 * or of an overloaded device their share of it.  Half of the request's own share stays its own.
 */
uint64_t traffic_expected(
	const struct batch_model *m, uint32_t class, uint64_t within_ns, double caution);
/*
 * How many of at most `most` rows of the model to run, so that most requests in a time are
 * answered: those of the batch, without those that arrive while it runs and can't wait for its end.
 */
uint32_t traffic_trim(
	const struct batcher *b, const struct batch_model *m, uint32_t class, uint32_t most);
