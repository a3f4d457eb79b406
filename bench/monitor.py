"""The cost of weir top and weir monitor while they watch: monitor.py BUILD [SECONDS [RECORDED
[IDLE]]].

RECORDED programs are recorded with device times (each launches and waits as fast as the simulated driver lets it), two
share a GPU, and IDLE processes of the same user do nothing.  weir top prints a look a second; weir monitor looks each five
seconds and is scraped each five, three times as often as deploy/ has it.  Processor time is that of the processes
themselves, user and system, as the kernel counts it.
"""
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/tools")
from on_call import Scene  # noqa: E402

build = sys.argv[1]
seconds, recorded, idle = (int(a) for a in (sys.argv[2:5] + ["30", "4", "1000"][len(sys.argv) - 2:]))


def spent(p):
    fields = open("/proc/%d/stat" % p.pid).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(p):
    return int(re.search(r"VmHWM:\s+(\d+)", open("/proc/%d/status" % p.pid).read()).group(1)) / 1024


with tempfile.TemporaryDirectory() as work:
    scene = Scene(build, ".", work)
    scene.window, scene.interval = "10s", "5s"
    try:
        scene.programs()
        for i in range(recorded):
            scene.service("r%d" % i, "20us")
        for _ in range(idle):
            scene.started.append(subprocess.Popen(["sleep", "100000"]))
        monitor = scene.monitor()
        top = subprocess.Popen([scene.weir, "top", "--json", "--share", scene.share], env=scene.environment,
                               stdout=subprocess.DEVNULL)
        scene.started.append(top)
        time.sleep(15)  # what is new is looked at more closely
        before, began = {p: spent(p) for p in (monitor, top)}, time.monotonic()
        scrapes = size = 0
        while time.monotonic() - began < seconds:
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % scene.port) as answer:
                text = answer.read().decode()
            scrapes, size = scrapes + 1, len(text)
            time.sleep(max(0, began + 5 * scrapes - time.monotonic()))
        wall = time.monotonic() - began
        rate = lambda p: 100 * (spent(p) - before[p]) / wall
        looks = re.search(r"^weir_monitor_looks_total (\S+)", text, re.M).group(1)
        took = float(re.search(r"^weir_monitor_look_seconds (\S+)", text, re.M).group(1))
        durations = float(re.search(r"^weir_regression_durations_total (\S+)", text, re.M).group(1))
        print("%d recorded programs, %d idle processes, %.0f s, %.0f kernels seen" % (recorded, idle, wall, durations))
        print("weir monitor: %.2f %% of a core, %.0f MiB; %d scrapes of %d bytes; the last of %s looks took %.2f ms"
              % (rate(monitor), memory(monitor), scrapes, size, looks, 1e3 * took))
        print("weir top:     %.2f %% of a core, %.0f MiB; a look a second" % (rate(top), memory(top)))
    finally:
        scene.stop_all()
