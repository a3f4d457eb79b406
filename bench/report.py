"""The cost of weir report --only LIST beside decoding: user time, medians of RUNS runs.

python3 bench/report.py BUILD [CALLS] makes a recording of ten million calls twice, packed and not.
`failures` is the cheapest walk over all calls: what it takes longer for the packed one is decoding.
A list's own part is what it takes for the one that is not packed.  The last column is its time for
the packed one by decoding and its own part together: 1 if it decodes each call once, and at most
1.1 is right.
"""
import os
import statistics
import subprocess
import sys
import tempfile

LISTS = ["failures", "api_trace", "steps", "waits", "idle_gaps", "kernels", "calls", "threads", "gpu_trace",
         "memory", "hints"]
RUNS = 7


def user_s(command):
    before = os.times().children_user
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return os.times().children_user - before


def main():
    build, calls = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "10000000"
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("plain.weir", "packed.weir")]
        for path, options in zip(paths, ([], ["-p"])):
            subprocess.run([build + "/tests/gen-trace", "-n", calls, *options, path], check=True,
                           stdout=subprocess.DEVNULL)
        decoding = None
        print(f"{'list':12} {'own part':>8} {'packed':>8} {'ratio':>6}")
        for name in LISTS:
            own, packed = (statistics.median(user_s([build + "/bin/weir", "report", "--only", name, path])
                                             for _ in range(RUNS)) for path in paths)
            decoding = packed - own if decoding is None else decoding
            print(f"{name:12} {own:6.2f} s {packed:6.2f} s {packed / (own + decoding):6.2f}")


main()
