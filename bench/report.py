"""What weir report --only SECTION costs beside the whole report: user time, the least of five runs.

python3 bench/report.py BUILD [FILE...]; without files it makes recordings of ten million calls, one
of them packed.  `failures` is the cheapest walk over all calls: it decodes and counts them by
function.  `trace` reads none.
"""
import os
import subprocess
import sys
import tempfile

SECTIONS = ["", "trace", "failures", "calls", "threads", "kernels", "memory", "waits", "api_trace",
            "steps", "gpu_trace", "idle_gaps", "hints"]
RUNS = 5


def user_s(command):
    before = os.times().children_user
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return os.times().children_user - before


def measure(weir, path):
    print(path)
    for section in SECTIONS:
        only = ["--only", section] if section else []
        least = min(user_s([weir, "report", *only, path]) for _ in range(RUNS))
        print(f"  {section or 'whole report':14} {least:6.2f} s")


def main():
    build, paths = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        for options in [] if paths else [[], ["-p"]]:
            path = os.path.join(folder, f"calls{''.join(options)}.weir")
            subprocess.run([build + "/tests/gen-trace", "-n", "10000000", *options, path],
                           check=True)
            paths.append(path)
        for path in paths:
            measure(build + "/bin/weir", path)


main()
