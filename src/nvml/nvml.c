/* See nvml.h.  Functions and layouts are those of NVIDIA's published nvml.h. */
#include "nvml/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digit.h"
#include "base/monotonic.h"
#include "base/xmalloc.h"

#define LIBRARY   "libnvidia-ml.so.1"
#define GPUS_MOST 64u
#define NAME_MOST 96u
#define UUID_TEXT 96u

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };
enum { PCIE_TX = 0, PCIE_RX = 1 };
enum { ECC_CORRECTED = 0, ECC_UNCORRECTED = 1, ECC_VOLATILE = 0 };
enum { FIELD_NVLINK_TX = 138, FIELD_NVLINK_RX = 139, FIELDS = 2 }; /* KiB, of all links */

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
	union {
		unsigned long long kib;
		double real;
	} value;
};
_Static_assert(sizeof(struct field) == 40, "nvmlFieldValue_t");

typedef void *gpu_handle;

/* X(name behind nvml, member, parameters).  Any but the first five may be missing in an older
 * driver. */
#define FUNCTIONS(X)                                                                               \
	X(Init_v2, init, (void))                                                                   \
	X(Shutdown, shutdown, (void))                                                              \
	X(DeviceGetCount_v2, count, (unsigned *ret))                                               \
	X(DeviceGetHandleByIndex_v2, handle, (unsigned index, gpu_handle *ret))                    \
	X(DeviceGetUUID, uuid, (gpu_handle, char *to, unsigned size))                              \
	X(DeviceGetName, name, (gpu_handle, char *to, unsigned size))                              \
	X(DeviceGetUtilizationRates, rates, (gpu_handle, struct rates * ret))                      \
	X(DeviceGetMemoryInfo, memory, (gpu_handle, struct memory * ret))                          \
	X(DeviceGetPowerUsage, power, (gpu_handle, unsigned *ret_mw))                              \
	X(DeviceGetEnforcedPowerLimit, power_limit, (gpu_handle, unsigned *ret_mw))                \
	X(DeviceGetTotalEnergyConsumption, energy, (gpu_handle, unsigned long long *ret_mj))       \
	X(DeviceGetTemperature, temperature, (gpu_handle, int sensor, unsigned *ret))              \
	X(DeviceGetClockInfo, clock, (gpu_handle, int which, unsigned *ret_mhz))                   \
	X(DeviceGetMaxClockInfo, clock_most, (gpu_handle, int which, unsigned *ret_mhz))           \
	X(DeviceGetCurrentClocksEventReasons, reasons, (gpu_handle, unsigned long long *ret))      \
	X(DeviceGetPcieThroughput, pcie, (gpu_handle, int which, unsigned *ret_kb_s))              \
	X(DeviceGetTotalEccErrors, ecc,                                                            \
		(gpu_handle, int error, int counter, unsigned long long *ret))                     \
	X(DeviceGetFieldValues, fields, (gpu_handle, int count, struct field *values))

struct functions {
#define MEMBER(name, member, parameters) int(*member) parameters;
	FUNCTIONS(MEMBER)
#undef MEMBER
	const char *(*text)(int result);
};

static const struct {
	const char *name;
	size_t at;
} symbols[] = {
#define SYMBOL(name, member, parameters) { "nvml" #name, offsetof(struct functions, member) },
	FUNCTIONS(SYMBOL) SYMBOL(ErrorString, text, )
		SYMBOL(DeviceGetCurrentClocksThrottleReasons, reasons, ) /* its name before */
#undef SYMBOL
};
#define NEEDED 5u

struct gpu {
	gpu_handle handle;
	uint8_t uuid[16];
	char name[NAME_MOST];
};

struct nvml {
	void *library;
	bool begun;
	struct functions f;
	unsigned count;
	struct gpu gpus[GPUS_MOST];
	bool has_tegra; /* the first GPU is of a Tegra */
	struct tegra tegra;
};

static int find_symbols(struct nvml *n, const char *path, struct error *err)
{
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		void *found = dlsym(n->library, symbols[i].name);
		char *to = (char *)&n->f + symbols[i].at;
		if (found)
			memcpy(to, &found, sizeof found);
		else if (i < NEEDED)
			return error_set(err, -ENOSYS,
				"%s has no %s: it is not NVIDIA's management library, or older than its driver 450",
				path, symbols[i].name);
	}
	return 0;
}

/* "GPU-77656972-2073-…": the 16 bytes, or zeros where that is no UUID. */
static void parse_uuid(const char *text, uint8_t ret[16])
{
	unsigned digits = 0;
	memset(ret, 0, 16);
	for (text += strncmp(text, "GPU-", 4) ? 0 : 4; *text && digits < 32; text++) {
		const int digit = hex_digit(*text);
		if (digit >= 0) {
			ret[digits / 2] = (uint8_t)(ret[digits / 2] << 4 | digit);
			digits++;
		} else if (*text != '-')
			break;
	}
	if (digits != 32)
		memset(ret, 0, 16);
}

static void add_gpu(struct nvml *n, unsigned index)
{
	char uuid[UUID_TEXT] = "";
	struct gpu *g = &n->gpus[index];
	if (n->f.handle(index, &g->handle))
		g->handle = NULL;
	if (!g->handle)
		return;
	if (!n->f.uuid(g->handle, uuid, sizeof uuid))
		parse_uuid(uuid, g->uuid);
	if (!n->f.name || n->f.name(g->handle, g->name, sizeof g->name))
		*g->name = 0;
	g->name[sizeof g->name - 1] = 0;
}

static int begin(struct nvml *n, struct error *err)
{
	int result = n->f.init();
	n->begun = !result;
	if (!result)
		result = n->f.count(&n->count);
	if (result)
		return error_set(err, -EIO, "NVIDIA's management library can't begin: %s",
			n->f.text ? n->f.text(result) : "it does not say why");
	n->count = n->count < GPUS_MOST ? n->count : GPUS_MOST;
	for (unsigned i = 0; i < n->count; i++)
		add_gpu(n, i);
	return 0;
}

static int load(struct nvml *n, const char *path, struct error *err)
{
	n->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!n->library)
		return error_set(err, -ENOENT,
			"%s can't be loaded (%s). It comes with NVIDIA's driver", path, dlerror());
	const int e = find_symbols(n, path, err);
	return e ? e : begin(n, err);
}

/* A Tegra is looked for if NVML lists no GPU, or only the one that JetPack calls "Orin (nvgpu)". */
static bool find_tegra(struct nvml *n)
{
	if (n->count > 1 || (n->count == 1 && !strstr(n->gpus[0].name, "(nvgpu)")))
		return false;
	n->has_tegra = !tegra_find("", &n->tegra);
	if (n->has_tegra && !n->count) {
		snprintf(n->gpus[0].name, NAME_MOST, "%s", n->tegra.name);
		n->count = 1;
	}
	return n->has_tegra;
}

int nvml_open(const char *path, struct nvml **ret_n, struct error *err)
{
	struct nvml *n = xcalloc(1, sizeof *n);
	int e = load(n, path ? path : LIBRARY, err);
	if (!path && find_tegra(n))
		e = 0;
	if (e) {
		nvml_close(n);
		return e;
	}
	*ret_n = n;
	return 0;
}

void nvml_close(struct nvml *n)
{
	if (!n)
		return;
	if (n->begun)
		n->f.shutdown();
	if (n->library)
		dlclose(n->library);
	free(n);
}

unsigned nvml_count(const struct nvml *n)
{
	return n ? n->count : 0;
}

const char *nvml_name(const struct nvml *n, unsigned gpu)
{
	return gpu < n->count ? n->gpus[gpu].name : "";
}

static uint16_t to_u16(unsigned long long value)
{
	return value < UINT16_MAX ? (uint16_t)value : UINT16_MAX;
}

static uint8_t percent(unsigned value)
{
	return value < 100 ? (uint8_t)value : 100;
}

/* Whether the driver has a function of the GPU and it succeeds: then the sample has that. */
#define TAKES(function, has, ...)                                                                  \
	(f->function && !f->function(h, __VA_ARGS__) && (s->valid |= (has)))

static void take_load(const struct functions *f, gpu_handle h, struct gpu_sample *s)
{
	struct rates rates;
	struct memory memory;
	unsigned celsius;
	if (TAKES(rates, SAMPLE_HAS_BUSY, &rates)) {
		s->busy_pct = percent(rates.gpu);
		s->memory_busy_pct = percent(rates.memory);
	}
	if (TAKES(memory, SAMPLE_HAS_MEMORY, &memory)) {
		s->memory_used = memory.used;
		s->memory_total = memory.total;
	}
	if (TAKES(temperature, SAMPLE_HAS_CELSIUS, 0, &celsius))
		s->celsius = to_u16(celsius);
}

static void take_power(const struct functions *f, gpu_handle h, struct gpu_sample *s)
{
	unsigned mw;
	unsigned long long mj;
	if (TAKES(power, SAMPLE_HAS_POWER, &mw))
		s->power_mw = mw;
	if (TAKES(power_limit, SAMPLE_HAS_POWER_LIMIT, &mw))
		s->power_limit_mw = mw;
	if (TAKES(energy, SAMPLE_HAS_ENERGY, &mj))
		s->energy_mj = mj;
}

static void take_clocks(const struct functions *f, gpu_handle h, struct gpu_sample *s)
{
	unsigned mhz;
	unsigned long long reasons;
	if (TAKES(clock, SAMPLE_HAS_SM_CLOCK, CLOCK_SM, &mhz))
		s->sm_mhz = to_u16(mhz);
	if (TAKES(clock_most, SAMPLE_HAS_SM_CLOCK_MOST, CLOCK_SM, &mhz))
		s->sm_mhz_most = to_u16(mhz);
	if (TAKES(clock, SAMPLE_HAS_MEMORY_CLOCK, CLOCK_MEMORY, &mhz))
		s->memory_mhz = to_u16(mhz);
	if (TAKES(reasons, SAMPLE_HAS_REASONS, &reasons))
		s->reasons = (uint16_t)reasons;
}

static void take_links(const struct functions *f, gpu_handle h, struct gpu_sample *s)
{
	struct field link[FIELDS] = { { .id = FIELD_NVLINK_TX, .scope = UINT_MAX },
		{ .id = FIELD_NVLINK_RX, .scope = UINT_MAX } };
	if (!f->fields || f->fields(h, FIELDS, link) || link[0].result || link[1].result)
		return;
	s->nvlink_tx = link[0].value.kib * 1024;
	s->nvlink_rx = link[1].value.kib * 1024;
	s->valid |= SAMPLE_HAS_NVLINK;
}

static void take_ecc(const struct functions *f, gpu_handle h, struct gpu_sample *s)
{
	unsigned long long corrected, uncorrected;
	if (!f->ecc || f->ecc(h, ECC_CORRECTED, ECC_VOLATILE, &corrected) ||
		f->ecc(h, ECC_UNCORRECTED, ECC_VOLATILE, &uncorrected))
		return;
	s->ecc_corrected = corrected;
	s->ecc_uncorrected = uncorrected;
	s->valid |= SAMPLE_HAS_ECC;
}

static void take_pcie(const struct functions *f, gpu_handle h, struct gpu_sample *s)
{
	unsigned tx, rx; /* thousands of bytes a second */
	if (!f->pcie || f->pcie(h, PCIE_TX, &tx) || f->pcie(h, PCIE_RX, &rx))
		return;
	s->pcie_tx = tx * 1000ull;
	s->pcie_rx = rx * 1000ull;
	s->valid |= SAMPLE_HAS_PCIE;
}

static void take_all(
	const struct functions *f, gpu_handle h, enum nvml_how how, struct gpu_sample *s)
{
	take_load(f, h, s);
	take_power(f, h, s);
	take_clocks(f, h, s);
	take_links(f, h, s);
	take_ecc(f, h, s);
	if (how == NVML_ALL)
		take_pcie(f, h, s);
}

void nvml_sample(const struct nvml *n, unsigned gpu, enum nvml_how how, struct gpu_sample *ret)
{
	*ret = (struct gpu_sample){ .device = (uint16_t)gpu };
	if (gpu >= n->count)
		return;
	ret->ns = monotonic_ns();
	memcpy(ret->uuid, n->gpus[gpu].uuid, sizeof ret->uuid);
	if (n->gpus[gpu].handle)
		take_all(&n->f, n->gpus[gpu].handle, how, ret);
	if (n->has_tegra)
		tegra_sample(&n->tegra, ret);
	if (ret->valid)
		ret->valid |= SAMPLE_TAKEN;
}
