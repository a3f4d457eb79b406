"""weir top as a person sees it: screen.py BUILD.  It runs in a pseudo-terminal, and a small terminal emulator (pyte)
says what would be on the screen.  Each step waits until the screen shows what it is to show.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, also for another Python
try:
    import pyte
except ImportError:
    print("pyte is not installed (python3-pyte)")
    sys.exit(77)

build = os.path.abspath(sys.argv[1])
weir = build + "/bin/weir"
steady = build + "/tests/cli/programs/steady"
sim = build + "/lib/weir/sim"
if not os.path.exists(sim + "/libnvidia-ml.so.1") or not os.path.exists(steady):
    print("the simulated driver is not built")
    sys.exit(77)
if "without ncurses" in subprocess.run([weir, "top"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       universal_newlines=True).stderr:
    print("weir is built without ncurses")
    sys.exit(77)
PATIENCE = 60


class Terminal:
    def __init__(self, columns, lines, *command, **more):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.pid, self.fd = pty.fork()
        if not self.pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.environ.update(TERM="linux", LC_ALL="C.UTF-8", LD_LIBRARY_PATH=sim, **more)
            os.execv(command[0], command)

    def read(self, timeout):
        """False at the end."""
        if not select.select([self.fd], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.stream.feed(data)
        return bool(data)

    def shows(self, pattern):
        until = time.monotonic() + PATIENCE
        while not re.search(pattern, "\n".join(self.screen.display), re.M):
            if not self.read(0.5) or time.monotonic() > until:
                sys.exit("never on the screen: %s\n%s" % (pattern, "\n".join(self.screen.display)))
        return re.search(pattern, "\n".join(self.screen.display), re.M)

    def press(self, keys):
        os.write(self.fd, keys)

    def ends(self):
        while self.read(PATIENCE):
            pass
        status = os.waitpid(self.pid, 0)[1]
        if status:
            sys.exit("exit status %d\n%s" % (status, "\n".join(self.screen.display)))


def program(*command):
    started = subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ, LD_LIBRARY_PATH=sim))
    assert started.stdout.readline() == b"runs\n"
    return started


def end(started):
    started.send_signal(signal.SIGTERM)
    started.wait()


with tempfile.TemporaryDirectory() as work:
    share = work + "/share"
    os.mkdir(share, 0o700)
    top = (weir, "top", "--interval", "50ms", "--share", share)
    # Nothing there but what other tests record meanwhile: it says so, and q ends it.
    t = Terminal(80, 24, *top)
    t.shows(r"nothing shares a GPU or is recorded|^ +\d+ recorded ")
    t.shows(r"^GPU 0 +\d+% .*8.00 GiB/80.0 GiB 500/700 W 64 C 1980 MHz")
    t.press(b"q")
    t.ends()

    shared = program(weir, "run", "--sim", "--share", share, "--class", "latency", "--", steady)
    recorded = program(weir, "record", "--sim", "-q", "-o", work + "/a.weir", "--", steady)
    try:
        t = Terminal(80, 24, *top, WEIR_SIM_NVML="slow=0-1000000")
        t.shows(r"policy fit, an arbiter runs")
        t.shows(r"^ +\d+ latency .*steady")
        row = t.shows(r"^ +(\d+) recorded +- +([\d.]+k?) .*steady")
        assert float(row.group(2).rstrip("k")) > 0
        assert "1200 MHz" in t.screen.display[1]
        assert t.screen.buffer[1][0].fg == "red", "a clock that is held down is red"
        assert len(t.screen.display[2].rstrip()) <= 80 and "PROGRAM" in t.screen.display[2]
        # By process: ascending, then the other way round.
        pids = r"PID +CLASS.*\n +(\d+) .*\n +(\d+) "
        t.press(b"N")
        time_out = time.monotonic() + PATIENCE
        for keys, rising in ((b"", True), (b"r", False)):
            t.press(keys)
            while True:
                found = t.shows(pids)
                if (int(found.group(1)) < int(found.group(2))) == rising:
                    break
                assert t.read(1) and time.monotonic() < time_out, "not sorted by process"
        t.press(b"h")
        t.shows("weir top: keys")
        t.press(b"h")
        t.shows("PID +CLASS")
        t.press(b"q")
        t.ends()
        # Lines without room are cut, and nothing runs into the next line.
        t = Terminal(44, 8, *top)
        t.shows(r"^q quit  h help")  # the last that is drawn
        assert t.screen.display[2].startswith("    PID CLASS") and t.screen.display[7].startswith("q quit  h help")
        t.press(b"q")
        t.ends()
        # More columns where there is room, and the history.
        t = Terminal(160, 40, *top)
        t.shows(r"PID +CLASS +STATE +BUSY% +LAUNCH/S +CALL/S +REQ/S +P99 +WAIT% +MEMORY +QUOTA +HISTORY +PROGRAM")
        t.shows(r"recorded .* [▁▂▃▄▅▆▇█]{2,} *steady")
        t.press(b"q")
        t.ends()
    finally:
        end(shared)
        end(recorded)
print("as it should be")
