/* The GPU of a Tegra, from folders that look like those of two boards. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "nvml/nvml.h"

static char root[16];

static void put(const char *path, const char *text)
{
	char whole[200];
	snprintf(whole, sizeof whole, "%s%s", root, path);
	for (char *at = strchr(whole, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		mkdir(whole, 0700);
		*at = '/';
	}
	FILE *f = fopen(whole, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int make_root(void **state)
{
	snprintf(root, sizeof root, "tegra-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[64];
	snprintf(command, sizeof command, "rm -r %s", root);
	return system(command);
}

static void orin_has_its_state_in_files(void **state)
{
	struct tegra t;
	put("/sys/devices/platform/gpu.0/load", "437\n");
	put("/sys/devices/platform/gpu.0/devfreq/17000000.gpu/cur_freq", "1300500000\n");
	put("/sys/class/thermal/thermal_zone0/type", "cpu-thermal\n");
	put("/sys/class/thermal/thermal_zone0/temp", "90000\n");
	put("/sys/class/thermal/thermal_zone1/type", "gpu-thermal\n");
	put("/sys/class/thermal/thermal_zone1/temp", "48531\n");
	put("/proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit");
	put("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n");
	assert_int_equal(tegra_find(root, &t), 0);
	assert_string_equal(t.name, "NVIDIA Jetson AGX Orin Developer Kit");

	struct gpu_sample s = { .busy_pct = 1, .valid = SAMPLE_HAS_BUSY | SAMPLE_HAS_POWER };
	tegra_sample(&t, &s);
	assert_int_equal(s.valid, SAMPLE_HAS_GPU_BUSY | SAMPLE_HAS_POWER | SAMPLE_HAS_CELSIUS |
					  SAMPLE_HAS_SM_CLOCK | SAMPLE_HAS_MEMORY);
	assert_int_equal(s.busy_pct, 44);
	assert_int_equal(s.celsius, 49);
	assert_int_equal(s.sm_mhz, 1300);
	assert_int_equal(s.memory_total, 1000 * 1024);
	assert_int_equal(s.memory_used, 600 * 1024);
}

static void an_older_board_has_what_it_has(void **state)
{
	struct tegra t;
	struct gpu_sample s = { 0 };
	put("/sys/devices/gpu.0/load", "1000\n");
	put("/sys/class/thermal/thermal_zone1/type", "GPU-therm\n");
	put("/sys/class/thermal/thermal_zone1/temp", "not now\n");
	assert_int_equal(tegra_find(root, &t), 0);
	tegra_sample(&t, &s);
	assert_int_equal(s.valid, SAMPLE_HAS_GPU_BUSY);
	assert_int_equal(s.busy_pct, 100);
}

static void other_machines_have_none(void **state)
{
	struct tegra t;
	put("/sys/devices/platform/gpu.1/load", "1\n");
	assert_int_equal(tegra_find(root, &t), -ENOENT);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ROOT(orin_has_its_state_in_files),
		WITH_ROOT(an_older_board_has_what_it_has),
		WITH_ROOT(other_machines_have_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
