/*
 * Reads traces without categories: those of XLA's profiler (JAX, TensorFlow) and of PyTorch before
 * Kineto. The place of an event gives its kind:
 *
 *	process             thread              event
 *	/device:GPU:0 …     Stream #13(…)       ran on the device's stream 13
 *	/device:GPU:0 …     XLA Ops, Steps, …   the same again, by another name: left out
 *	/host:CPU           …                   a call, a Python function ("$…"), or an annotation
 *	CUDA functions                          ran on a device
 *	CPU functions                           an operator
 *
 * XLA names processes and threads before their events.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/import_kineto.h"

#define HOST                                                                                       \
	UINT32_C(0x80000000) /* a process that is no device; others are their device's number */

static const char *string_of(const struct kineto *k, uint32_t id)
{
	return id ? k->s->strings.v[id - 1].text : "";
}

/* The number behind a word; false when the word or the number is not there. */
static bool number_behind(const char *text, const char *word, uint64_t most, uint64_t *ret_value)
{
	const char *at = strstr(text, word);
	char *end;
	if (!at || at[strlen(word)] < '0' || at[strlen(word)] > '9')
		return false;
	errno = 0;
	*ret_value = strtoull(at + strlen(word), &end, 10);
	return !errno && *ret_value <= most;
}

void xla_name(struct kineto *k, const struct named *n)
{
	const char *name = string_of(k, n->name);
	uint64_t number;
	uint32_t *to = NULL;
	if (n->thread && number_behind(name, "Stream #", UINT32_MAX - 1, &number)) {
		to = map_get(&k->xla_streams, MAP_KEY(n->pid, n->tid));
	} else if (!n->thread && number_behind(name, "/device:GPU:", HOST - 1, &number)) {
		to = map_get(&k->xla_processes, MAP_KEY(n->pid));
	} else if (!n->thread && strstr(name, "/host:")) {
		number = HOST;
		to = map_get(&k->xla_processes, MAP_KEY(n->pid));
	} else {
		return;
	}
	*to = (uint32_t)number;
}

static uint8_t activity_category(const char *name)
{
	if (!strncasecmp(name, "memcpy", 6))
		return C_ACTIVITY | GPU_MEMCPY;
	return C_ACTIVITY | (strncasecmp(name, "memset", 6) ? GPU_KERNEL : GPU_MEMSET);
}

static uint8_t host_category(const struct kineto *k)
{
	if (kineto_is_call(k))
		return C_CALL;
	return *string_of(k, k->event.name) == '$' ? C_RANGE | RANGE_PYTHON
						   : C_RANGE | RANGE_ANNOTATION;
}

static struct field number_field(uint32_t value)
{
	return (struct field){ .there = true, .value = value };
}

uint8_t xla_category(struct kineto *k)
{
	struct event *ev = &k->event;
	const char *name = string_of(k, ev->name);
	const uint64_t pid = kineto_key(&ev->pid);
	const uint32_t process = map_find(&k->xla_processes, MAP_KEY(pid));
	if (ev->pid.text && !strcmp(string_of(k, (uint32_t)ev->pid.value), "CUDA functions"))
		return activity_category(name);
	if (ev->pid.text && !strcmp(string_of(k, (uint32_t)ev->pid.value), "CPU functions"))
		return C_RANGE | RANGE_OPERATOR;
	if (process == MAP_NONE)
		return C_UNKNOWN;
	if (process == HOST)
		return host_category(k);
	const uint32_t stream = map_find(&k->xla_streams, MAP_KEY(pid, kineto_key(&ev->tid)));
	if (stream == MAP_NONE)
		return C_NONE;
	ev->arg[A_DEVICE] = number_field(process);
	ev->arg[A_STREAM] = number_field(stream);
	return activity_category(name);
}

/* "64,2,1" behind the word. */
static bool triple_behind(const char *text, const char *word, uint32_t v[3])
{
	const char *at = strstr(text, word);
	for (int i = 0; at && i < 3; i++) {
		char *end;
		at += i ? 1 : strlen(word);
		const unsigned long long value = strtoull(at, &end, 10);
		if (end == at || *at == '-' || value > UINT32_MAX || (i < 2 && *end != ','))
			return false;
		v[i] = (uint32_t)value;
		at = end;
	}
	return at != NULL;
}

void xla_details(const char *text, struct gpu_activity *w)
{
	uint64_t number, dynamic = 0;
	if (number_behind(text, "regs:", UINT16_MAX, &number)) {
		w->registers = (uint16_t)number;
		w->valid |= GPU_HAS_REGISTERS;
	}
	if (number_behind(text, "static_shared:", UINT32_MAX, &number) &&
		number_behind(text, "dynamic_shared:", UINT32_MAX, &dynamic)) {
		w->shared_static = (uint32_t)number;
		w->shared_dynamic = (uint32_t)dynamic;
		w->valid |= GPU_HAS_SHARED;
	}
	if (triple_behind(text, "grid:", w->grid) && triple_behind(text, "block:", w->block))
		w->valid |= GPU_HAS_SHAPE;
	if (number_behind(text, "size:", INT64_MAX, &number)) {
		w->bytes = number;
		w->valid |= GPU_HAS_BYTES;
	}
}
