"""Each list says alone what it says beside all others, though less of the report is made for it, in the kept recordings
and imports: alone.py BUILD [wrong].  Each trace is asked for every third list, the next one for the lists after those.
`wrong` spoils what is expected, of one trace."""
import concurrent.futures
import glob
import json
import os
import subprocess
import sys

weir, wrong = os.path.abspath(sys.argv[1]) + "/bin/weir", sys.argv[2:] == ["wrong"]
here = os.path.dirname(os.path.abspath(__file__))
traces = [t for t in sorted(glob.glob(here + "/**/*.weir", recursive=True) + glob.glob(here + "/kineto/*.json*"))
          if ".expected." not in t and os.path.getsize(t) < 3000000]
assert len(traces) >= 100
traces = traces[:1] if wrong else traces
ASKED = ("gpu_trace", "api_trace", "waits", "operators_by_shape", "kernel_shapes", "launch_gaps", "idle_gaps", "nccl",
         "range_kernels", "range_pace", "steps", "kernel_families", "busy_over_time", "kernels_at_once", "allocation_calls",
         "memory_over_time")


def report(trace, *options):
    """None: the recording has no such list."""
    done = subprocess.run([weir, "report", "--json", *options, trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout) if done.returncode == 0 else None


def compared(turn, trace):
    whole = report(trace)
    names = [key for key, value in whole.items() if isinstance(value, dict) or (isinstance(value, list) and key != "warnings"
                                                                               and key not in ("summary", "idle_gaps"))]
    together = report(trace, "--only", ",".join([*names, *ASKED]))
    for name in names:
        if together[name] != whole[name]:
            yield f"{trace}: {name} differs from the whole report's"
    asked = *names, *ASKED
    for name in asked if wrong else asked[turn % 3::3]:
        alone = report(trace, "--only", name)
        if (alone or {name: []})[name] != (together[name] or []) or wrong:
            yield f"{trace}: {name} differs alone: {str(alone)[:200]}, together {str(together[name])[:200]}"
            if wrong:
                return


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    found = [text for texts in pool.map(lambda turn_and_trace: list(compared(*turn_and_trace)), enumerate(traces)) for text in texts]
print("\n".join(found[:20]))
sys.exit(bool(found))
