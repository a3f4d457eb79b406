"""Try "On call with Weir" on a machine without a GPU: on_call.py BUILD [--stay] [--prometheus DIRECTORY].

Starts, on the simulated driver and on loopback only, a program that answers quickly and one that takes what is left, a
service that is recorded, and weir monitor; waits until that knows how long the service's kernel takes; starts a "new
version" of the service whose kernel takes a fifth longer; and shows the alarm, its evidence, and what weir diff says of
the two recordings.  With --stay all of it goes on until Enter is pressed, to be looked at with weir top, curl or a
browser; with --prometheus (or where it is installed) a Prometheus with the rules of deploy/ watches it.

The times that the detector goes by are a two-hundredth of what they are in production: windows of 50 ms, not 10 s.
docs/howto/on-call.md tells the story; tests/cli/prometheus.py looks at it with Prometheus.
"""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 900  # for what comes within a minute: nothing here depends on how fast the machine is


class Scene:
    def __init__(self, build, source, work, name=None):
        self.beside = ["classify-%d" % os.getpid(), "train-%d" % os.getpid()]
        self.build, self.source, self.work = os.path.abspath(build), os.path.abspath(source), work
        self.weir = self.build + "/bin/weir"
        self.steady = self.build + "/tests/cli/programs/steady"
        self.name = name or "serve-%d" % os.getpid()  # weir monitor sees whatever this user records
        self.app = self.program(self.name)
        self.sim = self.build + "/lib/weir/sim"
        self.window, self.interval = "50ms", "200ms"
        self.share, self.control = work + "/share", work + "/control"
        self.environment = dict(os.environ, LD_LIBRARY_PATH=self.sim, WEIR_SIM_NVML="gpus=2,slow=0-1000000")
        self.started, self.stopped = [], []
        os.mkdir(self.share, 0o700)

    def program(self, name):
        shutil.copy(self.steady, self.work + "/" + name)
        return self.work + "/" + name

    def start(self, *command, ready=None, **more):
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env=dict(self.environment, **more))
        self.started.append(p)
        line = p.stdout.readline() if ready else ""
        if ready and not re.search(ready, line):
            raise RuntimeError("%s: %s" % (" ".join(command), line))
        return p, line

    def stop(self, p):
        self.stopped.append(p)
        if p.poll() is None:
            p.send_signal(signal.SIGTERM)
        p.wait()

    def stop_all(self):
        for p in reversed(self.started):
            self.stop(p)

    def programs(self):
        """Two that share a GPU.  Their time is the GPU's: a request of 100 ms is as long on a machine whose cores are busy."""
        classify, train = map(self.program, self.beside)
        self.start(self.weir, "run", "--sim", "--share", self.share, "--class", "latency", "--memory", "4G", "--",
                   classify, "runs", "attention", "100", ready="runs", WEIR_SIM="time=real,wave=10ms")
        self.start(self.weir, "run", "--sim", "--share", self.share, "--memory", "8G", "--",
                   train, "runs", "train_step", "2", ready="runs", WEIR_SIM="time=real,wave=300us")

    def service(self, name, wave):
        """One that is recorded, with device times."""
        return self.start(self.weir, "record", "--sim", "--gpu", "-q", "-o", "%s/%s.weir" % (self.work, name), "--",
                          self.app, "runs", "decode_step", "2", ready="runs", WEIR_SIM="time=real,wave=" + wave)[0]

    def monitor(self, listen="127.0.0.1:0"):
        p, line = self.start(self.weir, "monitor", "--listen", listen, "--control", self.control, "--share", self.share,
                             "--baseline", self.work + "/baseline", "--window", self.window, "--interval", self.interval,
                             ready="http://127.0.0.1:")
        self.port = int(re.search(r":(\d+)/metrics", line).group(1))
        return p

    def ask(self, path, method="GET", body=None):
        c = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(self.control)
        c.request(method, path, body)
        text = c.getresponse().read().decode()
        c.close()
        return json.loads(text) if text else None

    def until(self, what, name=None):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                got = self.ask("/v1/regressions?program=" + (name or self.name))
            except http.client.RemoteDisconnected:
                got = None  # on a busy machine the monitor takes it for a client that is too slow
            if got and what(got):
                return got
            ended = [" ".join(p.args) for p in self.started if p.poll() is not None and p not in self.stopped]
            if ended:
                raise RuntimeError("it has ended: %s" % ended)
            if time.monotonic() > end:
                raise RuntimeError("it never came: %s" % got)
            time.sleep(0.2)

    def bystanders(self):
        """The regressions that were reported though nothing became slower."""
        return [r for name in self.beside for r in self.ask("/v1/regressions?program=" + name)["regressions"]]

    def slow_down(self, known=()):
        """The service is known, and those of `known` are; then its next version is slower; the alarm."""
        old = self.service("before", "300us")
        for name in (self.name, *known):
            self.until(lambda v: v["series_known"] >= 1, name)
        self.stop(old)
        self.service("after", "360us")
        return self.until(lambda v: v["firing"] >= 1)["regressions"][0]

    def prometheus(self, directory, port):
        """Prometheus as deploy/ has it, but each second, and with alerts that wait for a second."""
        deploy = self.source + "/deploy/prometheus/"
        config = open(deploy + "prometheus.yml").read()
        assert "127.0.0.1:9464" in config and "scrape_interval: 15s" in config
        config = config.replace("127.0.0.1:9464", "127.0.0.1:%d" % self.port).replace(
            "scrape_interval: 15s", "scrape_interval: 1s\n  evaluation_interval: 1s")
        rules = re.sub(r"for: \d+m", "for: 1s", open(deploy + "weir.rules.yml").read())
        for name, text in (("prometheus.yml", config), ("weir.rules.yml", rules)):
            with open(self.work + "/" + name, "w") as f:
                f.write(text)
        log = open(self.work + "/prometheus.log", "w")
        p = subprocess.Popen([directory + "/prometheus", "--config.file=" + self.work + "/prometheus.yml",
                              "--storage.tsdb.path=" + self.work + "/data", "--web.listen-address=127.0.0.1:%d" % port],
                             stdout=log, stderr=subprocess.STDOUT, cwd=self.work)
        self.started.append(p)
        return p


def say(text):
    print("\n\033[1m%s\033[0m" % text if sys.stdout.isatty() else "\n" + text, flush=True)


def show(alarm):
    print("%s of %s (%d): %.0f us before, %.0f us now, %.2f times as long; p = %.1e where %.1e was needed" % (
        alarm["name"], alarm["program"], alarm["pid"], alarm["before_ns"] / 1e3, alarm["after_ns"] / 1e3,
        alarm["slowdown_ratio"], alarm["p"], alarm["p_needed"]))


def tell(scene, stay, directory):
    scene.programs()
    scene.monitor("127.0.0.1:9464" if stay else "127.0.0.1:0")
    say("weir monitor answers at http://127.0.0.1:%d/metrics; it learns what is usual" % scene.port)
    if directory:
        scene.prometheus(directory, 9090)
        say("Prometheus is at http://127.0.0.1:9090/alerts")
    alarm = scene.slow_down(known=() if stay else scene.beside[:1])  # so that a false alarm of theirs would be seen
    say("A new version of the service is slower, and weir monitor says so:")
    show(alarm)
    if scene.bystanders():
        raise RuntimeError("programs that go on as before are said to be slower: %s" % scene.bystanders())
    say("Which recording has it?")
    recording = next(r for r in scene.ask("/v1/recordings")["recordings"] if r["program"] == scene.name)
    print("%s, level %s, %d launches so far" % (os.path.basename(recording["file"]), recording["level"], recording["launches"]))
    say("weir diff before.weir after.weir:")
    subprocess.run([scene.weir, "diff", scene.work + "/before.weir", recording["file"]], env=scene.environment)
    if stay:
        say("All of it goes on: weir top --share %s\n  curl --unix-socket %s http://localhost/v1/regressions\nEnter ends it."
            % (scene.share, scene.control))
        sys.stdin.readline()


def main():
    arguments = sys.argv[1:]
    stay = "--stay" in arguments
    directory = None
    if "--prometheus" in arguments:
        directory = arguments.pop(arguments.index("--prometheus") + 1)
    elif stay and shutil.which("prometheus"):
        directory = os.path.dirname(shutil.which("prometheus"))
    build = arguments[0]
    if not os.path.exists(build + "/tests/cli/programs/steady"):
        print("there is nothing in %s; make build makes it" % build)
        return 77
    with tempfile.TemporaryDirectory() as work:
        scene = Scene(build, os.path.dirname(os.path.dirname(os.path.abspath(__file__))), work)
        try:
            tell(scene, stay, directory)
        finally:
            scene.stop_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
