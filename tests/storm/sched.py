"""sched.py BUILD KILLS [SEED] [--break]: kills programs that share a GPU, and the arbiter, at random moments.

Each round runs a latency program and two of best effort under weir run on a shared simulated device, and kills one
process of theirs, drawn by lot: a program, or the weir run that is the arbiter.  The others end well, and then every
slot and every bit of the shared file is free.

--break takes a weir in which slots of the dead are not given back (broken_segment.c): then that has to be found, and only
that, or it is an error.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 120  # a process that hangs so long will never end


def children(pid):
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


class Left(Exception):
    """Slots or bits that nobody has any more."""


def run_round(build, weir, lot, folder):
    share = folder / "share"
    program = build / "tests/hostile/programs/regulated"
    environment = dict(os.environ, LD_LIBRARY_PATH=str(build / "lib/weir/sim"),
                       WEIR_SIM=f"gpu={folder}/device,time=real" + lot.choice(("", ",sharing=mps")))
    environment.pop("WEIR", None)
    weir = [str(weir), "run", "--quiet", "--sim", "--max-wait", "50ms", "--share", str(share)]
    share.mkdir(0o700)
    keeper = subprocess.Popen([str(program), "keeps"], env=dict(environment, WEIR=f"share={share}"),
                              stdout=subprocess.PIPE)
    keeper.stdout.readline()  # what is shared goes with the last process that has it
    try:
        return run_programs(program, environment, weir, lot, share)
    finally:
        keeper.kill()
        keeper.communicate()


def run_programs(program, environment, weir, lot, share):
    runs = [subprocess.Popen([*weir, "--class", each, "--", str(program), "work"], env=environment,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for each in ("latency", "best-effort", "best-effort")]
    time.sleep(lot.random() * lot.choice((0.02, 0.2, 1)))
    of = lot.randrange(3)
    programs = {i: children(run.pid) for i, run in enumerate(runs)}
    victim = lot.choice([runs[of].pid, *programs[of]])
    killed = runs[of].poll() is None
    if killed:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            killed = False
    for i, run in enumerate(runs):
        said = run.communicate(timeout=PATIENCE_S)[0].decode()
        assert i == of or run.returncode == 0, f"one that was not killed left with {run.returncode}: {said}"
    end = time.monotonic() + PATIENCE_S
    while not all(is_gone(pid) for all_of in programs.values() for pid in all_of):
        assert time.monotonic() < end, "a program whose weir run was killed does not end"
        time.sleep(0.01)
    subprocess.run([*weir, "--", "true"], env=environment, check=True, timeout=PATIENCE_S)
    left = subprocess.run([str(program), "clean"], env=dict(environment, WEIR=f"share={share}"), text=True,
                          capture_output=True, timeout=PATIENCE_S)
    if left.returncode:
        raise Left(f"something is left: {left.stdout}")
    return killed


def main():
    broken, words = "--break" in sys.argv, [word for word in sys.argv[1:] if word != "--break"]
    build, kills = pathlib.Path(words[0]).resolve(), int(words[1])
    seed = int(words[2]) if len(words) > 2 else random.randrange(1 << 30)
    weir = build / ("tests/storm/broken/bin/weir" if broken else "bin/weir")
    lot, done = random.Random(seed), 0
    while done < kills:
        with tempfile.TemporaryDirectory(prefix="storm-sched.") as folder:
            try:
                done += run_round(build, weir, lot, pathlib.Path(folder))
            except (AssertionError, Left, subprocess.SubprocessError) as error:
                print(f"after {done} kills, seed {seed}: {error}")
                return 0 if broken and isinstance(error, Left) else 1
    print(f"{done} killed, seed {seed}: nothing hung, nothing was left")
    return 1 if broken else 0


sys.exit(main())
