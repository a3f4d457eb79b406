"""quota.py BUILD [PROCESSES [SECONDS [SEED]]]: programs under one quota, killed at random moments.

So many processes allocate and free under one `weir run --memory` on a shared simulated device; who is killed is replaced.
An observer outside the quota sees the device: never more in use than the quota, and nothing in the end.  Then two groups
beside each other each get their own, and one within another no more than the outer one has.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 120
QUOTA_MIB = 256
NEST = 'weir=$1; program=$2; "$weir" run --quiet --sim --memory 1G -- "$program" fill 64'


def start_all(weir, environment, processes, end):
    """A shell under the quota that starts the processes, and says which."""
    script = 'n=$1; shift; for i in $(seq "$n"); do "$@" & echo $!; done; read -r more; while [ "$more" = again ]; do ' \
        '"$@" & echo $!; read -r more; done; wait'
    return subprocess.Popen([*weir, "--memory", f"{QUOTA_MIB}M", "--", "sh", "-c", script, "sh", str(processes),
                             str(environment["PROGRAM"]), "work", str(end)], env=environment, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def kill_some(run, pids, end, lot):
    killed = 0
    while time.monotonic() < end:
        time.sleep(lot.random() * 0.05)
        pid = pids.pop(lot.randrange(len(pids)))
        try:
            os.kill(pid, signal.SIGKILL)
            killed += 1
        except ProcessLookupError:
            pass
        run.stdin.write("again\n")
        run.stdin.flush()
        pids.append(int(run.stdout.readline()))
    return killed


def storm(weir, environment, processes, seconds, lot):
    program = environment["PROGRAM"]
    observer = subprocess.Popen([program, "watch"], env=environment, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE)
    assert observer.stdout.readline() == "ready\n"
    run = start_all(weir, environment, processes, int(time.time()) + seconds + 2)
    pids = [int(run.stdout.readline()) for _ in range(processes)]
    killed = kill_some(run, pids, time.monotonic() + seconds, lot)
    run.stdin.close()
    assert run.wait(PATIENCE_S) == 0, f"the processes left with {run.returncode}"
    most, last, samples = (int(n) for n in observer.communicate("end\n", PATIENCE_S)[0].split())
    assert most <= QUOTA_MIB << 20, f"{most} bytes were in use, more than {QUOTA_MIB} MiB"
    assert last == 0, f"{last} bytes are still in use"
    assert most > 0 and killed > 0
    return f"{killed} killed, {most >> 20} MiB in use at most in {samples} looks"


def granted(command, environment):
    done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def groups(weir, environment):
    """Quotas beside each other, then one within another, of programs whose context takes 2 MiB."""
    program = environment["PROGRAM"]
    environment = dict(environment, WEIR_SIM=environment["WEIR_SIM"].replace("context=0", "context=2M"))
    both = [subprocess.Popen([*weir, "--memory", size, "--", program, "fill", "64"], env=environment, text=True,
                             stdout=subprocess.PIPE) for size in ("512M", "256M")]
    counts = [int(each.communicate(timeout=PATIENCE_S)[0]) for each in both]
    assert counts == [7, 3], f"two beside each other were granted {counts} blocks of 64 MiB"
    inner = ["sh", "-c", NEST, "sh", weir[0], program]
    assert granted([*weir, "--memory", "512M", "--", *inner], environment) == 7
    inner[2] = NEST.replace("1G", "192M")
    assert granted([*weir, "--memory", "512M", "--", *inner], environment) == 2
    inner[2] = NEST.replace("--memory 1G ", "")
    assert granted([*weir, "--memory", "512M", "--", *inner], environment) == 7


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    processes, seconds = (int(a) for a in (sys.argv[2:4] + ["48", "4"][len(sys.argv[2:4]):]))
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
    with tempfile.TemporaryDirectory(prefix="storm-quota.") as folder:
        environment = dict(os.environ, LD_LIBRARY_PATH=str(build / "lib/weir/sim"),
                           WEIR_SIM=f"gpu={folder}/device,time=real,context=0",
                           PROGRAM=str(build / "tests/storm/quota"))
        environment.pop("WEIR", None)
        weir = [str(build / "bin/weir"), "run", "--quiet", "--sim", "--share", f"{folder}/share"]
        try:
            said = storm(weir, environment, processes, seconds, random.Random(seed))
            groups(weir, environment)
        except (AssertionError, subprocess.SubprocessError) as error:
            print(f"seed {seed}: {error}")
            return 1
    print(f"seed {seed}: {said}")
    return 0


sys.exit(main())
