/* Reads the kernel's files of a Tegra's GPU. */
#include "nvml/nvml.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define PATH_SIZE 160u

/* Orin's folder, and the one of older boards, of which some have both. */
static const char *const folders[] = { "/sys/devices/platform/gpu.0", "/sys/devices/gpu.0" };

static bool read_line(const char *path, char *to, int size)
{
	FILE *in = fopen(path, "re");
	const bool got = in && fgets(to, size, in);
	if (in)
		fclose(in);
	if (got)
		to[strcspn(to, "\n")] = 0;
	return got;
}

static bool read_number(const char *path, unsigned long *ret)
{
	char text[32];
	return read_line(path, text, sizeof text) && sscanf(text, "%lu", ret) == 1;
}

/* The first path of a pattern below the root, whose file has the text, if there is one; "": none.
 */
static void find_path(const struct tegra *t, const char *pattern, const char *text, char *ret)
{
	char path[PATH_SIZE], line[32];
	glob_t found;
	*ret = 0;
	snprintf(path, sizeof path, "%s%s", t->root, pattern);
	if (glob(path, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc && !*ret; i++)
		if (!text || (read_line(found.gl_pathv[i], line, sizeof line) &&
				     !strcasecmp(line, text)))
			snprintf(ret, PATH_SIZE, "%s", found.gl_pathv[i]);
	globfree(&found);
}

/* The temperature's file is beside the one that names its zone: GPU-therm, or gpu-thermal from
 * JetPack 6 on. */
static void find_temperature(struct tegra *t)
{
	static const char zones[] = "/sys/class/thermal/thermal_zone*/type";
	find_path(t, zones, "GPU-therm", t->temperature);
	if (!*t->temperature)
		find_path(t, zones, "gpu-thermal", t->temperature);
	if (*t->temperature)
		memcpy(strrchr(t->temperature, '/') + 1, "temp", sizeof "temp");
}

int tegra_find(const char *root, struct tegra *ret)
{
	char path[PATH_SIZE];
	*ret = (struct tegra){ .root = root };
	for (size_t i = 0; i < sizeof folders / sizeof *folders && !ret->gpu; i++) {
		snprintf(path, sizeof path, "%s%s/load", root, folders[i]);
		if (!access(path, R_OK))
			ret->gpu = folders[i];
	}
	if (!ret->gpu)
		return -ENOENT;
	snprintf(path, sizeof path, "%s/devfreq/*/cur_freq", ret->gpu);
	find_path(ret, path, NULL, ret->clock);
	find_temperature(ret);
	snprintf(path, sizeof path, "%s/proc/device-tree/model", root);
	if (!read_line(path, ret->name, sizeof ret->name))
		snprintf(ret->name, sizeof ret->name, "GPU of a Tegra");
	return 0;
}

/* The GPU uses the machine's memory. */
static void take_memory(const struct tegra *t, struct gpu_sample *s)
{
	char path[PATH_SIZE], line[128];
	unsigned long kib, total = 0, available = 0;
	snprintf(path, sizeof path, "%s/proc/meminfo", t->root);
	FILE *in = fopen(path, "re");
	if (!in)
		return;
	while (fgets(line, sizeof line, in)) {
		if (sscanf(line, "MemTotal: %lu", &kib) == 1)
			total = kib;
		if (sscanf(line, "MemAvailable: %lu", &kib) == 1)
			available = kib;
	}
	fclose(in);
	if (!available || available > total)
		return;
	s->memory_total = (uint64_t)total * 1024;
	s->memory_used = (uint64_t)(total - available) * 1024;
	s->valid |= SAMPLE_HAS_MEMORY;
}

void tegra_sample(const struct tegra *t, struct gpu_sample *s)
{
	char path[PATH_SIZE];
	unsigned long value;
	snprintf(path, sizeof path, "%s%s/load", t->root, t->gpu);
	if (read_number(path, &value)) { /* per mille */
		s->busy_pct = (uint8_t)(value < 1000 ? (value + 5) / 10 : 100);
		s->valid = (s->valid & ~(uint32_t)SAMPLE_HAS_BUSY) | SAMPLE_HAS_GPU_BUSY;
	}
	if (*t->temperature && read_number(t->temperature, &value)) { /* thousandths */
		s->celsius = (uint16_t)((value + 500) / 1000);
		s->valid |= SAMPLE_HAS_CELSIUS;
	}
	if (*t->clock && read_number(t->clock, &value)) { /* Hz */
		s->sm_mhz = (uint16_t)(value / 1000000);
		s->valid |= SAMPLE_HAS_SM_CLOCK;
	}
	take_memory(t, s);
}
