/*
 * The view of weir top and weir monitor: programs that share a GPU (the shared file), recorded
 * programs (their traces), and the GPUs (NVML). It changes nothing.
 *
 * watch_look() makes the view anew, with rates since the look before. JSON leaves out unknown
 * values, and text has "-" for them: has_rates and has_busy say. One owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/json.h"
#include "event/format.h"
#include "nvml/nvml.h"
#include "monitor/feed.h"
#include "monitor/recordings.h"
#include "monitor/servers.h"
#include "share/segment.h"

#define WATCH_HISTORY 60u /* values of the looks before, the newest last */
#define WATCH_NAME    40u

struct watch_program {
	uint32_t pid;
	char name[WATCH_NAME];
	bool shares, recorded;
	/* For a program that shares: a row for each of its GPUs. */
	uint8_t uuid[16];
	uint32_t class, mode; /* enum share_class, enum share_mode */
	bool inside;          /* of a request */
	uint32_t waits_for;   /* process; 0: nobody */
	uint64_t device_ns;   /* predicted device time, ever */
	uint64_t requests, waits, waited_ns, expired, capped;
	uint64_t inside_ns;                      /* it had work on the device, ever */
	uint64_t request_p50_ns, request_p99_ns; /* 0: no request has ended */
	uint32_t request[SHARE_BUCKETS];         /* how long all took, and their sum */
	uint64_t request_ns;
	struct share_steer steer;           /* how they fare against their target */
	uint64_t memory_used, memory_quota; /* bytes; quota 0: none */
	uint32_t refused;
	bool switched_off; /* recorded, at level off: nobody counts its calls now */
	/* For one that is recorded; its GPU activities are as in struct follow_process. */
	uint64_t calls, launches, lost;
	uint64_t gpu_from_ns, gpu_until_ns, gpu_busy_ns, gpu_look_from_ns;
	/* Since the look before; 0 where they are not known. */
	bool has_rates; /* it was there then */
	bool has_busy;
	double busy; /* share of the time in which a GPU ran something of it */
	double calls_per_s, launches_per_s, requests_per_s, waiting;
	float history[WATCH_HISTORY]; /* of busy, or without that of launches_per_s */
};

struct watch_gpu {
	struct gpu_sample sample;
	char name[WATCH_NAME];
	float history[WATCH_HISTORY]; /* utilisation, percent */
};

struct watch {
	struct share_file *file;       /* may come and go between looks; NULL: nobody shares */
	const struct servers *servers; /* models, for the screen; or NULL */
	struct nvml *nvml;             /* NULL: none */
	struct feed feed;              /* its regress NULL: slowdowns are not looked for */
	struct recordings recordings;
	uint64_t ns;             /* CLOCK_MONOTONIC of the look; 0: none yet */
	uint64_t looks, took_ns; /* how many; how long the last took */
	/* By enum share_class: of the programs while they were watched. */
	struct watch_class {
		double device_s, waiting_s, requests;
	} classes[CLASS_BEST_EFFORT + 1];
	char policy[17]; /* "": nobody shares */
	bool open, has_arbiter;
	ARRAY(struct watch_program) programs, before; /* those that share first */
	ARRAY(struct watch_gpu) gpus;
};

/* Zeroed but for file, nvml and feed.regress it begins. */
void watch_look(struct watch *w, enum nvml_how how);
void watch_fini(struct watch *w);

/* Whether there are rates of calls; of launches; of requests and waits. */
/* Whether they are known; rates also need a look before. */
bool watch_counts_calls(const struct watch_program *p);
bool watch_counts_launches(const struct watch_program *p);
bool watch_has_calls(const struct watch_program *p);
bool watch_has_launches(const struct watch_program *p);
bool watch_has_requests(const struct watch_program *p);

/* "latency"; "gated". */
const char *watch_class_name(const struct watch_program *p);
const char *watch_mode_name(const struct watch_program *p);

/* "GPU-77656972-2073-…". */
#define WATCH_UUID 48
void watch_uuid(const uint8_t uuid[16], char ret[WATCH_UUID]);

/* The keys of the view, into the object that is open. */
void watch_put_json(struct json *j, const struct watch *w);
