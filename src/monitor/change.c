/* Changes how programs share and what is recorded. */
#include "monitor/change.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "monitor/recordings.h"
#include "record/control.h"
#include "share/policy.h"
#include "trace/live_header.h"

uint32_t change_pid(const char *text)
{
	char *end;
	const unsigned long pid = *text >= '1' && *text <= '9' ? strtoul(text, &end, 10) : 0;
	return pid && pid <= INT32_MAX && !*end ? (uint32_t)pid : 0;
}

int change_class(struct share_file *f, uint32_t pid, const char *class, struct error *err)
{
	const bool latency = !strcmp(class, "latency");
	char path[PATH_MAX];
	int e = -ESRCH;
	if (!latency && strcmp(class, "best-effort") != 0)
		return error_set(err, -EINVAL,
			"'%.20s' is no class. The classes are latency and best-effort", class);
	for (uint32_t i = 0; f && i < SHARE_SLOTS; i++) {
		const struct share_slot *s = &f->slots[i];
		if (!share_is_live(s) || s->who.pid != pid)
			continue;
		share_set_class(f, i, latency ? CLASS_LATENCY : CLASS_BEST_EFFORT);
		e = 0;
	}
	if (!e)
		return 0;
	if (recordings_find(pid, path) == -EPERM)
		return error_set(err, -EPERM, "process %u is another user's", pid);
	return error_set(
		err, -ESRCH, "no process %u shares a GPU here. Start one with weir run", pid);
}

int change_policy(struct share_file *f, const char *policy, struct error *err)
{
	const struct policy *p = policy_find(policy);
	if (!p)
		return error_set(err, -EINVAL, "no such policy. `weir sched policy` lists them");
	if (!f)
		return error_set(err, -ESRCH, "nobody shares a GPU");
	f->tuning = (struct share_tuning){ 0 };
	policy_set(f, p);
	return 0;
}

int change_header(struct trace_header *h, const char *to, struct error *err)
{
	switch (control_switch(h, to)) {
	case CONTROL_DONE:
		return 0;
	case CONTROL_UNKNOWN:
		return error_set(err, -EINVAL,
			"'%.20s' is no command for a recording. Use on, off, stat, work, full, all, args, no-args or stop",
			to);
	case CONTROL_STOPPED:
		return error_set(
			err, -EBUSY, "the recording was stopped, and can't be switched on again");
	case CONTROL_FINISHED:
		return error_set(err, -EBUSY, "the recording is finished");
	default:
		return error_set(
			err, -EBUSY, "the recording has ended: its file was full, or was cut off");
	}
}

int change_recording(uint32_t pid, const char *to, struct error *err)
{
	char path[PATH_MAX];
	struct trace_header *h;
	int e = recordings_find(pid, path);
	if (e == -EPERM)
		return error_set(err, e, "process %u is another user's", pid);
	if (e == -ESRCH)
		return error_set(err, e, "there is no process %u", pid);
	if (e)
		return error_set(err, -ESRCH,
			"process %u is not being recorded. Start it with `weir record --level off`, and switch it on later",
			pid);
	e = live_header_open(path, false, &h);
	if (e)
		return error_set(err, -EBUSY, "the recording of process %u has ended", pid);
	e = change_header(h, to, err);
	live_header_close(h);
	return e;
}
