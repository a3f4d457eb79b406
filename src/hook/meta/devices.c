/* Writes the devices' properties into the trace, so that readers can compare kernels with them. */
#include "hook/meta/devices.h"

#include <string.h>

#include "hook/core/hook_table.h"
#include "hook/core/metadata.h"
#include "hook/core/hook_parts.h"
#include "predict/launch.h"

static uint64_t device_attribute(int device, int which)
{
	int value = 0;
	if (REAL(cuDeviceGetAttribute)(&value, which, device) || value < 0)
		return 0;
	return (uint64_t)value;
}

/* Asks for the UUID of a part of a device (MIG), if the driver knows that question. */
static void ask_uuid(int i, uint8_t ret_uuid[16])
{
	int (*ask)(void *, int) = real_at(FN_cuDeviceGetUuid_v2);
	if (!ask)
		ask = real_at(FN_cuDeviceGetUuid);
	if (!ask || ask(ret_uuid, i))
		memset(ret_uuid, 0, 16);
}

/* Reads a device's properties.  CUdevice is its number. */
static bool ask_device(int i, struct device_properties *ret_d)
{
	enum { /* CUdevice_attribute */
		CLOCK_RATE = 13,
		MULTIPROCESSORS = 16,
		MEMORY_CLOCK_RATE = 36,
		MAJOR = 75,
		MINOR = 76
	};
	size_t bytes = 0;
	ret_d->name[0] = 0;
	if (REAL(cuDeviceGetName)(ret_d->name, sizeof ret_d->name, i) ||
		REAL(cuDeviceTotalMem_v2)(&bytes, i))
		return false;
	ret_d->args[0] = (uint64_t)i;
	ret_d->args[1] = bytes;
	ret_d->args[2] = device_attribute(i, MULTIPROCESSORS);
	ret_d->args[3] = device_attribute(i, MAJOR) << 16 | device_attribute(i, MINOR);
	ret_d->clocks[0] = (uint64_t)i;
	ret_d->clocks[1] = device_attribute(i, CLOCK_RATE);
	ret_d->clocks[2] = device_attribute(i, MEMORY_CLOCK_RATE);
	ask_uuid(i, ret_d->uuid);
	return true;
}

static void write_uuid(const struct device_properties *d)
{
	static const uint8_t none[16];
	uint64_t args[3] = { d->args[0] };
	memcpy(args + 1, d->uuid, sizeof d->uuid);
	if (memcmp(d->uuid, none, sizeof none))
		meta_text(META_UUID, args, 3, "", 0);
}

static bool same_kind(const struct device_properties *a, const struct device_properties *b)
{
	return !strncmp(a->name, b->name, sizeof a->name) && a->args[2] == b->args[2] &&
	       a->args[3] == b->args[3];
}

void devices_describe(void)
{
	int count = 0;
	if (!real_at(FN_cuDeviceGetCount) || !real_at(FN_cuDeviceGetName) ||
		!real_at(FN_cuDeviceTotalMem_v2) || !real_at(FN_cuDeviceGetAttribute) ||
		REAL(cuDeviceGetCount)(&count))
		return;
	struct device_properties first = { 0 }, d;
	struct predict_uuids all = { 0 };
	bool one_kind = true;
	for (int i = 0; i < count && i < 64; i++) {
		if (!ask_device(i, &d))
			continue;
		meta_text(META_DEVICE, d.args, 4, d.name, (uint32_t)strnlen(d.name, sizeof d.name));
		if (d.clocks[1])
			meta_text(META_CLOCKS, d.clocks, 3, "", 0);
		write_uuid(&d);
		predict_uuid_add(&all, d.uuid);
		if (!*first.name)
			first = d;
		one_kind = one_kind && same_kind(&first, &d);
	}
	memcpy(first.uuid, all.all, sizeof first.uuid);
	if (*first.name)
		hook_above.devices_known(&first, one_kind);
}
