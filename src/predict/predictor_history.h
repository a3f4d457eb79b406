/* The first predictor: launches that ran before, one cache line each. */
#pragma once

#include "predict/predictor.h"
#include "predict/tables.h"

/* How often the key was seen; 0 when it is not there. */
uint32_t history_seen(const struct predict *p, uint64_t key);

/* The entry's values are those of another device of the same kind: see predict_transfer(). */
void history_transfer(struct entry *e);

/* The place at which the key's entries begin. */
static inline const struct entry *history_home(const struct predict *p, uint64_t key)
{
	return &tables_entries(p->tables)[key & p->mask];
}

bool history_ask(
	const struct predict *p, const struct predict_question *q, struct predict_answer *a);
