/*
 * The environment's orders to the simulated driver: WEIR_SIM=key=value,… or WEIR_SIM=@FILE with one
 * key=value a line.  Read once, at the first call into the library; afterwards everything here but
 * the fault counters is constant, so any thread may read it. sim/README.md lists the keys.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct script {
	bool real_time;
	int devices;
	int version;
	int capability;                     /* 90 is compute capability 9.0 */
	char name[64];                      /* of each device */
	int uuid;                           /* the last byte of the first device's */
	size_t memory_bytes, context_bytes; /* of a device; that a context takes of it */
	uint64_t launch_ns, wave_ns, copy_ns;
	uint64_t load_ns; /* of the host: the first launch of a function, as with lazy loading */
	/* A wave of the kernels of this name lasts unit_ns for each unit of their parameter. */
	char kernel[64];
	int kernel_param;
	uint64_t unit_ns; /* 0: no such kernels */
	double pcie_gbps, hbm_gbps;
	unsigned queue_depth;
	/* The device that processes share: see driver/gpu_file.h. */
	char gpu[512]; /* the file, or "" */
	bool mps;
	bool host_clock; /* events and device times as the host's clock sees them */
	double speed;
	uint64_t slice_ns, switch_ns;
};

extern struct script script;

/* Reads the environment, once. */
void script_load(void);

/* NULL, or the reason why the script is not understood. */
const char *script_error(void);

/* Waits on the host, in real time. */
void script_wait_ns(uint64_t ns);

/* Waits as a delay rule says, then returns the code of the fault due now, or 0. */
int script_fault(int id);
