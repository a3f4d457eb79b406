/* The device that predictions are for, put together from its two tables. */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "predict/launch.h"

/* An empty kernel runs for about this long on any device since 7.0 (start to end, as CUPTI tells).
 */
#define FLOOR_NS 1000

int predict_device_find(
	const char *name, unsigned cc, uint32_t sms, struct predict_device *ret_device)
{
	const struct gpu *g = gpu_find(name, cc);
	const struct occupancy_device *sm =
		g ? occupancy_device_find(g->cc / 10, g->cc % 10) : NULL;
	if (!sm)
		return -ENODEV;
	struct predict_device d = {
		.sm = *sm,
		.cc = g->cc,
		.sms = sms ? sms : g->sms,
		.dram_bytes_ns = g->dram_gb_per_s,
		.has = g->has,
		.floor_ns = FLOOR_NS,
	};
	for (int unit = 0; unit < GPU_UNITS; unit++)
		d.flops_ns[unit] = g->tflops[unit] * 1e3;
	*ret_device = d;
	return 0;
}

int predict_device_any(const char *name, unsigned cc, uint32_t sms,
	struct predict_device *ret_device, bool *ret_known)
{
	const struct occupancy_device *sm = occupancy_device_find(cc / 10, cc % 10);
	*ret_known = !predict_device_find(name, cc, sms, ret_device);
	if (*ret_known)
		return 0;
	if (!sm || !sms)
		return -ENODEV;
	*ret_device = (struct predict_device){
		.sm = *sm, .cc = cc, .sms = sms, .dram_bytes_ns = 1e30, .floor_ns = FLOOR_NS
	};
	return 0;
}

void predict_uuid_add(struct predict_uuids *u, const uint8_t uuid[16])
{
	static const uint8_t none[16];
	uint64_t all[2], next[2];
	memcpy(all, u->all, sizeof all);
	memcpy(next, uuid, sizeof next);
	u->unknown |= !memcmp(uuid, none, sizeof none);
	for (int i = 0; i < 2; i++)
		all[i] = u->count ? hash_mix(all[i] ^ hash_mix(next[i])) : next[i];
	u->count++;
	memcpy(u->all, u->unknown ? none : (const void *)all, sizeof u->all);
}
