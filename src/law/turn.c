/*
 * Turns under LAW_SLICES: a client has the device until it is idle, or until its slice is over and
 * another client wants the device. Its blocks then stop and continue in its next turn. During a
 * switch nothing runs, but the last client returns for free.
 */
#include "law/state.h"

static bool wants(const struct law *law, uint32_t client)
{
	return client != NONE && law->clients[client].kernels;
}

static void begin(struct law *law, uint32_t client)
{
	law->loaded = client;
	law->running = true;
	law->slice_end = law->now + law->device.slice_ns;
	field_thaw(law, &law->fields[client]);
}

static void stop(struct law *law)
{
	if (law->running)
		field_freeze(law, &law->fields[law->loaded]);
	law->running = false;
}

/* The next that wants the device behind the one that has it, perhaps that one itself; NONE. */
static uint32_t next_client(const struct law *law)
{
	const uint32_t from = law->loaded == NONE ? 0 : law->loaded + 1;
	for (uint32_t i = 0; i < LAW_CLIENTS; i++)
		if (wants(law, (from + i) % LAW_CLIENTS))
			return (from + i) % LAW_CLIENTS;
	return NONE;
}

/* Slices that are over while nobody else wanted the device begin again. */
static void renew(struct law *law)
{
	if (law->slice_end < law->now)
		law->slice_end +=
			(law->now - law->slice_end) / law->device.slice_ns * law->device.slice_ns;
	if (law->slice_end < law->now || (law->slice_end == law->now && law->wanting < 2))
		law->slice_end += law->device.slice_ns;
}

static void switch_to(struct law *law, uint32_t client)
{
	stop(law);
	if (client == law->loaded || law->loaded == NONE) {
		begin(law, client);
		return;
	}
	law->switching = true;
	law->target = client;
	law->switch_at = law->now + law->device.switch_ns;
	law->totals.switches++;
}

void turn_take(struct law *law)
{
	if (law->device.sharing == LAW_MPS)
		return;
	if (law->switching) {
		if (law->now < law->switch_at)
			return;
		law->switching = false;
		begin(law, law->target);
	}
	if (law->running && wants(law, law->loaded)) {
		renew(law);
		if (law->now < law->slice_end)
			return;
	}
	const uint32_t next = next_client(law);
	if (next == NONE)
		stop(law);
	else
		switch_to(law, next);
}

uint64_t turn_next(const struct law *law)
{
	if (law->device.sharing == LAW_MPS)
		return LAW_NEVER;
	if (law->switching)
		return law->switch_at;
	return law->running && law->wanting > 1 ? law->slice_end : LAW_NEVER;
}

struct field *turn_field(struct law *law)
{
	if (law->device.sharing == LAW_MPS)
		return &law->fields[0];
	return law->running ? &law->fields[law->loaded] : NULL;
}

void turn_drop(struct law *law, unsigned client)
{
	if (law->device.sharing == LAW_MPS)
		return;
	if (law->loaded == client) {
		law->running = false;
		law->loaded = NONE;
	}
	if (law->switching && law->target == client)
		law->switching = false;
}
