"""deploy/ with Debian's own Prometheus, on loopback: prometheus.py BUILD SOURCE.

promtool takes the configuration, the rules, their tests and the metrics; Prometheus scrapes weir monitor, each query of
the dashboard has a series, and the alerts that are to fire do, with a kernel that became slower among them.
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

build, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path.insert(0, source + "/tools")
from on_call import PATIENCE, Scene  # noqa: E402

if not os.path.exists(build + "/lib/weir/sim/libnvidia-ml.so.1") or not os.path.exists(build + "/tests/cli/programs/steady"):
    print("the simulated driver is not built")
    sys.exit(77)
found = subprocess.run(["sh", source + "/tests/prometheus.sh", build], stdout=subprocess.PIPE, text=True)
if found.returncode:
    print(found.stdout.strip())
    sys.exit(found.returncode)
directory = found.stdout.strip()


def free_port():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.close()
    return port


def api(path, **arguments):
    url = "http://127.0.0.1:%d/api/v1/%s?%s" % (port, path, urllib.parse.urlencode(arguments))
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            got = json.load(answer)
    except urllib.error.HTTPError as e:
        raise AssertionError("%s: %s" % (arguments, e.read().decode()))
    assert got["status"] == "success", got
    return got["data"]


def ready():
    try:
        urllib.request.urlopen("http://127.0.0.1:%d/-/ready" % port, timeout=PATIENCE).close()
        return True
    except OSError:  # also while it starts, when it answers 503
        return False


def until(what, said):
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end and prometheus.poll() is None, (said(), open(work + "/prometheus.log").read())
        time.sleep(0.3)


def queries(node):
    """Each query of the dashboard, as Grafana asks it."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "expr":
                yield value.replace("$__rate_interval", "10s").replace("$instance", ".*").replace("$gpu", ".*")
            else:
                yield from queries(value)
    elif isinstance(node, list):
        for value in node:
            yield from queries(value)


def empty(asked):
    return [q for q in asked if not api("query", query=q)["result"]]


def firing():
    """By name; of what became slower, what is this scene's: other recordings of this user may run meanwhile."""
    return {a["labels"]["alertname"]: a for a in api("alerts")["alerts"]
            if a["state"] == "firing" and a["labels"].get("program", scene.name) == scene.name}


def promtool(*arguments, **more):
    subprocess.run([directory + "/promtool", *arguments], check=True, stdout=subprocess.PIPE, **more)


with tempfile.TemporaryDirectory() as work:
    scene = Scene(build, source, work)
    try:
        for command in (("check", "config", "--syntax-only", "prometheus.yml"), ("check", "rules", "weir.rules.yml"),
                        ("test", "rules", "weir.rules.test.yml")):
            promtool(*command, cwd=source + "/deploy/prometheus")
        scene.programs()
        scene.monitor()
        port = free_port()
        prometheus = scene.prometheus(directory, port)
        until(ready, lambda: "it does not answer")
        alarm = scene.slow_down()
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % scene.port, timeout=PATIENCE) as answer:
            promtool("check", "metrics", input=answer.read())
        asked = list(queries(json.load(open(source + "/deploy/grafana/weir.json"))))
        assert len(asked) > 25, asked
        until(lambda: not empty(asked), lambda: empty(asked))
        assert empty(["weir_gpu_utilisation"])  # the control: one that nobody exports is noticed
        wanted = {"WeirGpuThrottled", "WeirSlower"}
        until(lambda: wanted <= set(firing()), lambda: wanted - set(firing()))
        slower = firing()["WeirSlower"]
        assert slower["labels"]["id"] == alarm["id"] and slower["labels"]["kind"] == "kernel", slower
        assert re.search("takes 1.[12]\\d* times as long", slower["annotations"]["summary"]), slower
        assert not scene.bystanders(), scene.bystanders()
        # WeirCallsLost is about all recordings of this user, and some lose calls on purpose.
        assert not {"WeirMonitorDown", "WeirNoArbiter", "WeirGpuHot", "WeirQuotaRefused"} & set(firing()), firing()
        # An accepted alarm is quiet, and weir monitor that is gone is said to be.
        scene.ask("/v1/regressions/" + alarm["id"], "PUT", '{"to": "accepted"}')
        until(lambda: "WeirSlower" not in firing(), firing)
        scene.stop(scene.started[2])
        until(lambda: "WeirMonitorDown" in firing(), firing)
    finally:
        scene.stop_all()
print("as it should be")
