/*
 * A test double of NVIDIA's management library, libnvidia-ml.so.1: what nvml.h publishes, as far as
 * Weir asks for it.  Its GPUs are those of the simulated driver, by UUID.  Their values follow from
 * how often a GPU was asked for its utilisation, so that tests know them:
 *
 *	WEIR_SIM_NVML=key,key…
 *		gpus=N		so many GPUs (1)
 *		slow=A-B	the samples A to B, counted from 0, have an SM clock of 1200 MHz for
 *				a power cap; others have 1980 MHz
 *		idle		nothing runs: no utilisation, and a low clock for that reason
 *		bare		utilisation, memory and clocks alone; the rest is not supported
 *		refuse		the library can't begin: the driver is not loaded
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

#define GPUS_MOST 16

enum answer { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_LOADED = 9 };

struct rates {
	unsigned gpu, memory;
};

struct memory {
	unsigned long long total, free, used;
};

struct field {
	unsigned id, scope;
	long long timestamp, latency_us;
	int type, result;
	unsigned long long value;
};

struct gpu {
	unsigned long asked; /* samples begun */
};

static struct gpu gpus[GPUS_MOST];
static unsigned gpu_count = 1;
static unsigned long slow_from = 1, slow_to; /* none */
static bool idle, bare, refuse;

static void read_script(void)
{
	const char *script = getenv("WEIR_SIM_NVML");
	const char *at;
	if (!script)
		return;
	if ((at = strstr(script, "gpus=")))
		gpu_count = (unsigned)strtoul(at + 5, NULL, 10) % (GPUS_MOST + 1);
	if ((at = strstr(script, "slow=")))
		sscanf(at + 5, "%lu-%lu", &slow_from, &slow_to);
	idle = strstr(script, "idle");
	bare = strstr(script, "bare");
	refuse = strstr(script, "refuse");
}

/* Which sample it is that asks, from 0. */
static unsigned long sample_of(const struct gpu *g)
{
	return g->asked ? g->asked - 1 : 0;
}

static bool is_slow(const struct gpu *g)
{
	return sample_of(g) >= slow_from && sample_of(g) <= slow_to;
}

API int nvmlInit_v2(void)
{
	read_script();
	return refuse ? NOT_LOADED : OK;
}

API int nvmlShutdown(void)
{
	return OK;
}

API const char *nvmlErrorString(int result)
{
	return result == NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}

API int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = gpu_count;
	return OK;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **ret)
{
	if (index >= gpu_count)
		return INVALID_ARGUMENT;
	*ret = &gpus[index];
	return OK;
}

API int nvmlDeviceGetUUID(const struct gpu *g, char *to, unsigned size)
{
	snprintf(to, size, "GPU-77656972-2073-696d-756c-6174656400%02x", (unsigned)(g - gpus));
	return OK;
}

API int nvmlDeviceGetName(const struct gpu *g, char *to, unsigned size)
{
	snprintf(to, size, "Weir simulated GPU");
	return OK;
}

API int nvmlDeviceGetUtilizationRates(struct gpu *g, struct rates *ret)
{
	const unsigned long n = g->asked++;
	*ret = (struct rates){ idle ? 0 : 60 + n % 5 * 10, idle ? 0 : 30 };
	return OK;
}

API int nvmlDeviceGetMemoryInfo(const struct gpu *g, struct memory *ret)
{
	*ret = (struct memory){ 80ull << 30, 72ull << 30, 8ull << 30 };
	return OK;
}

API int nvmlDeviceGetPowerUsage(const struct gpu *g, unsigned *ret_mw)
{
	*ret_mw = idle ? 75000 : is_slow(g) ? 700000 : 500000;
	return bare ? NOT_SUPPORTED : OK;
}

API int nvmlDeviceGetEnforcedPowerLimit(const struct gpu *g, unsigned *ret_mw)
{
	*ret_mw = 700000;
	return bare ? NOT_SUPPORTED : OK;
}

API int nvmlDeviceGetTotalEnergyConsumption(const struct gpu *g, unsigned long long *ret_mj)
{
	*ret_mj = 1000000 + sample_of(g) * 50000;
	return bare ? NOT_SUPPORTED : OK;
}

API int nvmlDeviceGetTemperature(const struct gpu *g, int sensor, unsigned *ret)
{
	*ret = idle ? 31 : 64;
	return bare || sensor ? NOT_SUPPORTED : OK;
}

API int nvmlDeviceGetClockInfo(const struct gpu *g, int which, unsigned *ret_mhz)
{
	const unsigned sm = idle ? 345 : is_slow(g) ? 1200 : 1980;
	*ret_mhz = which == 2 ? 3201 : sm;
	return OK;
}

API int nvmlDeviceGetMaxClockInfo(const struct gpu *g, int which, unsigned *ret_mhz)
{
	*ret_mhz = which == 2 ? 3201 : 1980;
	return OK;
}

API int nvmlDeviceGetCurrentClocksThrottleReasons(const struct gpu *g, unsigned long long *ret)
{
	*ret = idle ? 1 : is_slow(g) ? 4 : 0;
	return bare ? NOT_SUPPORTED : OK;
}

API int nvmlDeviceGetPcieThroughput(const struct gpu *g, int which, unsigned *ret_kb_s)
{
	*ret_kb_s = which ? 2000 : 1000;
	return bare ? NOT_SUPPORTED : OK;
}

API int nvmlDeviceGetTotalEccErrors(
	const struct gpu *g, int error, int counter, unsigned long long *ret)
{
	*ret = error ? 0 : 3;
	return bare ? NOT_SUPPORTED : OK;
}

API int nvmlDeviceGetFieldValues(const struct gpu *g, int count, struct field *values)
{
	for (int i = 0; i < count; i++) {
		const bool known = values[i].id == 138 || values[i].id == 139;
		values[i].result = known ? OK : NOT_SUPPORTED;
		values[i].value = sample_of(g) * (values[i].id == 138 ? 1024 : 2048);
	}
	return bare ? NOT_SUPPORTED : OK;
}
