"""storm.py BUILD KILLS [SEED]: kills programs, and weir record, at random moments.

Each round runs tests/storm/load.c under weir record, or with the library preloaded alone, and ends it
by one of the WAYS below once it has made a number of calls drawn by lot.  The program keeps its own
count of its calls in a page.  Whatever ended, and when:

* the recording can be read, nothing that it holds was left out;
* every call that had returned is there, or said to be lost, and none is there that was not made;
* beside the recording nothing is left, nor in /dev/shm;
* who was not killed ended well.

The moments follow the program's own progress, so nothing depends on how fast the machine is.  With
--break a launch too many is believed of every program, so that each check is seen to fail.
"""

import ctypes
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

COUNTS = ("begun", "done", "asked", "answered", "allocs_begun", "allocs_done", "stop", "processes")
PATIENCE_S = 120  # a process that hangs so long will never end

PR_SET_CHILD_SUBREAPER = 36


class Page:
    """The counts that the program keeps."""

    def __init__(self, path):
        path.write_bytes(bytes(4096))
        self.file = open(path, "r+b")
        self.map = mmap.mmap(self.file.fileno(), 4096)

    def __getattr__(self, name):
        return struct.unpack_from("<q", self.map, 8 * COUNTS.index(name))[0]

    def end(self):
        struct.pack_into("<q", self.map, 8 * COUNTS.index("stop"), 1)

    def close(self):
        self.map.close()
        self.file.close()


def children(pid):
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child] + descendants(child)
    return found


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: nothing happened for {PATIENCE_S} s")
        time.sleep(0.0005)


class Round:
    def __init__(self, build, lot, folder):
        self.build, self.lot, self.folder = build, lot, folder
        self.trace = folder / "t.weir"
        self.page = Page(folder / "page")
        self.recorder, self.flight = lot.random() < 0.7, False
        self.kills = 0

    def command(self):
        lot = self.lot
        shape = [lot.choice((1, 1, 2, 4, 8, 16)), int(lot.random() < 0.4), lot.choice((0, 0, 1, 3)),
                 lot.choice((0, 0, 0, 2, 4))]
        self.calls = lot.choice((50, 2000, 20000, 100000))
        load = [str(self.build / "tests/storm/load"), str(self.folder / "page"), *map(str, shape), str(self.calls)]
        if not self.recorder:
            return load
        options = lot.choice(([], [], [], ["--no-pack"], ["--flight=1M"]))
        self.flight = options == ["--flight=1M"]
        return [str(self.build / "bin/weir"), "record", "-q", *options, "-o", str(self.trace), "--", *load]

    def start(self):
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.build / "tests/hostile/libs/mock"))
        if not self.recorder:
            environment["LD_PRELOAD"] = str(self.build / "lib/weir/libweir.so")
            environment["WEIR"] = f"record:{self.trace}"
        self.top = subprocess.Popen(self.command_line, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def program(self):
        """The program's processes, its children in other namespaces included."""
        me = descendants(os.getpid())
        return [pid for pid in me if not (self.recorder and pid == self.top.pid)]

    def kill(self, pids):
        self.kills += len(pids)
        send(pids, signal.SIGKILL)

    def reap(self):
        """All are children of this process in the end, since it is their subreaper."""
        def none_left():
            try:
                while True:
                    pid, status = os.waitpid(-1, os.WNOHANG)
                    if not pid:
                        return False
                    if pid == self.top.pid:
                        self.top.returncode = os.waitstatus_to_exitcode(status)
            except ChildProcessError:
                return True
        wait_until(none_left, "the end of all processes")

    # -- ways to end ---------------------------------------------------------------------

    def nobody(self):
        self.page.end()

    def program_dies(self):
        self.kill(self.program())

    def one_process_dies(self):
        of = self.program()
        self.kill(self.lot.sample(of, 1) if of else [])
        self.page.end()

    def recorder_dies(self):
        if self.recorder:
            self.kill([self.top.pid])
        moment = self.page.done + self.lot.randrange(3000)
        wait_until(lambda: self.page.done >= min(moment, self.calls) or not self.program(), "progress")
        self.page.end()

    def both_die(self):
        pids = descendants(os.getpid())
        self.lot.shuffle(pids)
        self.kill(pids)

    def packing_dies(self):
        self.page.end()
        if not self.recorder:
            return
        wait_until(lambda: not self.program(), "the program's end")
        for _ in range(self.lot.randrange(20000)):
            pass
        if self.top.pid in children(os.getpid()):
            self.kill([self.top.pid])

    def some_are_stopped(self):
        pids = descendants(os.getpid())
        stopped = self.lot.sample(pids, self.lot.randrange(len(pids) + 1))
        send(stopped, signal.SIGSTOP)
        for _ in range(self.lot.randrange(200000)):
            pass
        if self.lot.random() < 0.5:
            self.kill(pids)
        send(stopped, signal.SIGCONT)
        self.page.end()

    WAYS = (nobody, program_dies, program_dies, one_process_dies, recorder_dies, both_die, packing_dies,
            some_are_stopped)

    # -- what must hold -------------------------------------------------------------------

    def report(self):
        ring = self.folder / "t.weir.ring"
        if self.flight and not self.trace.exists() and ring.exists():
            ring.rename(self.trace)  # its keeper was killed
        if not self.trace.exists():
            assert not self.page.processes or not self.page.done, "there is no recording"
            return None
        run = subprocess.run([str(self.build / "bin/weir"), "report", "--json", "--top=0", str(self.trace)],
                             capture_output=True, text=True, env=dict(os.environ, ASAN_OPTIONS=""))
        if not self.page.begun and "nothing was recorded" in run.stderr:
            return None  # it was killed while it made the file
        assert run.returncode == 0, f"weir report: {run.returncode}: {run.stderr}"
        return json.loads(run.stdout)

    def check(self, surplus):
        report = self.report()
        if report is None:
            return
        totals, calls = report["totals"], {c["name"]: c["count"] for c in report["calls"]}
        damage = [w for w in report["warnings"] if "damage" in w or "left out" in w]
        assert not damage, damage
        assert "missing" in totals, "what was entered is not known"
        assert totals["missing"] == 0 and totals["surplus"] == 0, totals
        page, lost = self.page, totals["lost"] + totals["overwritten"]
        for name, least, most in (("cuLaunchKernel", page.done + surplus, page.begun),
                                  ("cuCtxGetCurrent", page.answered, page.asked),
                                  ("cuMemAlloc_v2", page.allocs_done, page.allocs_begun),
                                  ("cuMemFree_v2", page.allocs_done, page.allocs_begun)):
            have = calls.get(name, 0)
            assert least <= have + lost and have <= most, f"{name}: {least} to {most} made, {have} here, {lost} lost"
        if not self.kills:
            assert self.top.returncode == 0, f"exit status {self.top.returncode}"
            assert totals["entered"] == totals["returned"] and not totals["lost"], totals

    def check_leftovers(self, shm_before):
        beside = {p.name for p in self.folder.iterdir()} - {"page", "t.weir", "t.weir.ring" if self.flight else ""}
        assert not beside, f"left beside the recording: {beside}"
        new = set(os.listdir("/dev/shm")) - shm_before - {f"weir-{os.getuid()}"}
        wait_until(lambda: not new & set(os.listdir("/dev/shm")), f"left in /dev/shm: {new}")  # others' go in time

    def run(self, surplus):
        shm_before = set(os.listdir("/dev/shm"))
        way = self.lot.choice(self.WAYS)
        self.command_line = self.command()
        moment = self.lot.randrange(self.lot.choice((1, 100, 5000, 60000)))
        self.text = f"{way.__name__} at {moment}: {' '.join(self.command_line)}"
        self.start()
        try:
            wait_until(lambda: self.page.done >= min(moment, self.calls) or self.top.pid not in children(os.getpid())
                       or self.top.poll() is not None, "progress")
            way(self)
            self.reap()
        finally:
            send(descendants(os.getpid()), signal.SIGKILL)
        self.check(surplus)
        self.check_leftovers(shm_before)
        self.page.close()


def main():
    surplus = int("--break" in sys.argv)
    words = [w for w in sys.argv[1:] if w != "--break"]
    build, kills = pathlib.Path(words[0]).resolve(), int(words[1])
    seed = int(words[2]) if len(words) > 2 else random.SystemRandom().randrange(1 << 32)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    killed = rounds = failed = 0
    while killed < kills and failed < 5:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="storm."))
        one = Round(build, random.Random(f"{seed} {rounds}"), folder)
        try:
            one.run(surplus)
            shutil.rmtree(folder)
        except AssertionError as why:
            failed += 1
            print(f"seed {seed}, round {rounds}: {one.text}\n  {why}\n  kept: {folder}", flush=True)
        rounds += 1
        killed += one.kills
    print(f"{rounds} rounds, {killed} kills, {failed} failed (seed {seed})")
    return failed != 0


sys.exit(main())
