"""weir monitor as Prometheus and others meet it, on loopback: monitor.py BUILD SOURCE.

Metrics of programs that share, of recorded ones and of GPUs; bad requests, clients that send a byte and wait, and a
thousand connections, none of which stops it; the socket on which things are changed; and that alert rules and the
dashboard ask for nothing that /metrics does not have.  promtool checks the rest where it is installed (PROMTOOL, or
in PATH).
"""
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

build, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
weir, steady, sim = build + "/bin/weir", build + "/tests/cli/programs/steady", build + "/lib/weir/sim"
if not os.path.exists(sim + "/libnvidia-ml.so.1") or not os.path.exists(steady):
    print("the simulated driver is not built")
    sys.exit(77)
environment = dict(os.environ, LD_LIBRARY_PATH=sim, WEIR_SIM_NVML="gpus=2,slow=0-1000000")
promtool = os.environ.get("PROMTOOL") or shutil.which("promtool")
PATIENCE = 60
started = []
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def start(*command, ready):
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    started.append(p)
    line = p.stdout.readline().decode()
    if "without libmicrohttpd" in line:
        print("weir is built without libmicrohttpd")
        sys.exit(77)
    assert re.search(ready, line), line
    return p, line


def get(path="/metrics", method="GET", code=200):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    c.request(method, path)
    answer = c.getresponse()
    body = answer.read().decode()
    assert answer.status == code, (method, path, answer.status, body)
    c.close()
    return body


def ask(method, path, code):
    """On the Unix socket."""
    c = http.client.HTTPConnection("localhost", timeout=PATIENCE)
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(control)
    c.request(method, path)
    answer = c.getresponse()
    body = answer.read().decode()
    assert answer.status == code, (method, path, answer.status, body)
    c.close()
    return json.loads(body) if body else None


def samples(text):
    """{name: {labels: value}}"""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, value = re.fullmatch(r'(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)', line).groups()
            row = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
            assert row not in found.setdefault(name, {}), "twice: " + line
            found[name][row] = float(value)
    return found


def until(what, *path):
    end = time.monotonic() + PATIENCE
    while not what(samples(get())):
        assert time.monotonic() < end, "it never came: " + get()
        time.sleep(0.05)


def raw(data, answer=True):
    s = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    s.sendall(data)
    got = s.recv(4096) if answer else b""
    return s, got


def check_metrics():
    text = get()
    m = samples(text)
    assert set(k for k in m) <= set(re.findall(r"^# TYPE (\w+) ", text, re.M)), "a metric without a type"
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)", text, re.M):
        assert (kind == "counter") == name.endswith("_total"), name
    assert m["weir_gpu_utilization_ratio"][(("gpu", "1"),)] <= 1
    assert m["weir_gpu_sm_clock_hertz"][(("gpu", "0"),)] == 1.2e9
    assert m["weir_gpu_clock_limited"][(("gpu", "0"), ("reason", "power_cap"))] == 1
    assert m["weir_gpu_memory_used_bytes"][(("gpu", "0"),)] == 8 << 30
    assert m["weir_class_programs"] == {(("class", "latency"),): 1, (("class", "best-effort"),): 1}
    assert sorted(m["weir_recordings"].values()) >= [1]
    assert len(m["weir_program_requests_total"]) == 2 and all(dict(k)["program"] == "steady"
                                                             for k in m["weir_program_requests_total"])
    # What grows, grows.
    for name in ("weir_program_requests_total", "weir_program_launches_total", "weir_program_calls_total",
                 "weir_class_requests_total"):
        before = sum(m[name].values())
        until(lambda now: sum(now[name].values()) > before)
    if promtool:
        subprocess.run([promtool, "check", "metrics"], input=text.encode(), check=True)
    return set(re.findall(r"^# TYPE (\w+) ", text, re.M)), {n: {l for row in rows for l, _ in row} for n, rows in m.items()}


def check_clients():
    get("/healthz")
    get("/nothing", code=404)
    get("/v1/programs", code=404)  # on the socket alone
    get("/v1/policy?policy=strict", method="PUT", code=405)
    get(method="DELETE", code=405)
    get("/" + "a" * 100000, code=414)
    for bad in (b"nonsense\r\n\r\n", b"GET /metrics\r\n\r\n", b"\0" * 4096, b"GET /metrics HTTP/1.1\r\nContent-Length: x\r\n\r\n"):
        raw(bad, answer=False)[0].close()
    # Who begins and does not go on, and who does not read, stands in nobody's way.
    slow = [raw(b"GET /metr", answer=False)[0] for _ in range(20)]
    slow += [raw(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 50, answer=False)[0] for _ in range(20)]
    get()
    idle = [raw(b"", answer=False)[0] for _ in range(1000)]
    assert len(idle) == 1000
    get()
    assert raw(b"GET /healthz HTTP/1.0\r\n\r\n")[1].startswith(b"HTTP/1.")
    for s in slow + idle:
        s.close()
    get()
    assert monitor.poll() is None


def check_control():
    assert stat.S_IMODE(os.stat(control).st_mode) == 0o600
    programs = {p["pid"]: p for p in ask("GET", "/v1/programs", 200)["programs"] if p["shares"]}
    pid = next(p for p in programs if programs[p]["class"] == "best-effort")
    ask("PUT", "/v1/programs/%d/class?class=latency" % pid, 204)
    assert next(p for p in ask("GET", "/v1/programs", 200)["programs"] if p["pid"] == pid)["class"] == "latency"
    ask("PUT", "/v1/programs/%d/class?class=best-effort" % pid, 204)
    ask("PUT", "/v1/policy?policy=strict", 204)
    assert ask("GET", "/v1/policy", 200)["policy"] == "strict"
    for path, code in (("/v1/programs/%d/class?class=fast" % pid, 400), ("/v1/programs/%d/class" % pid, 400),
                       ("/v1/programs/1/class?class=latency", 404), ("/v1/programs/x/class?class=latency", 404),
                       ("/v1/policy?policy=none", 400), ("/v1/policy", 400), ("/v1", 404)):
        assert ask("PUT", path, code)["error"]


def expressions(node, key="expr"):
    """Every query of the dashboard, wherever it stands."""
    if isinstance(node, dict):
        for k, v in node.items():
            if k in (key, "query", "definition") and isinstance(v, str):
                yield v
            else:
                yield from expressions(v, key)
    elif isinstance(node, list):
        for v in node:
            yield from expressions(v, key)


def check_deploy(names):
    dashboard = json.load(open(source + "/deploy/grafana/weir.json"))
    rules = open(source + "/deploy/prometheus/weir.rules.yml").read()
    queries = list(expressions(dashboard)) + re.findall(r"^ *expr: (.*(?:\n {10,}.*)*)", rules, re.M)
    asked = {name for query in queries for name in re.findall(r"\bweir_\w+", query)}
    assert len(asked) > 15, asked
    assert asked <= names, "nobody exports " + " ".join(asked - names)
    # The control: a name that is not there is noticed.
    assert not {"weir_gpu_utilisation"} <= names
    if promtool:
        for command in (("check", "config", "--syntax-only", "prometheus.yml"), ("check", "rules", "weir.rules.yml"),
                        ("test", "rules", "weir.rules.test.yml")):
            subprocess.run([promtool, *command], check=True, cwd=source + "/deploy/prometheus")
    else:
        print("promtool is not installed: rules are not checked by it")


def check_openapi():
    """Every path and method of openapi.yaml is answered, and every key of the JSON is described there."""
    text = open(source + "/docs/reference/openapi.yaml").read()
    paths = re.split(r"^  (/\S+):$", text[:text.index("\ncomponents:")], flags=re.M)[1:]
    assert len(paths) >= 10, paths
    for path, described in zip(paths[::2], paths[1::2]):
        for method in re.findall(r"^    (get|put):$", described, re.M):
            if path in ("/metrics", "/healthz"):
                get(path)
            else:
                ask(method.upper(), path.replace("{pid}", "1"), {"get": 200, "put": 400}[method])
    view = ask("GET", "/v1/programs", 200)
    for kind, rows in (("Program", view["programs"]), ("Gpu", view["gpus"]), ("View", [view])):
        part = re.split(r"^    (\w+):$", text[text.index("  schemas:"):], flags=re.M)
        keys = set(re.findall(r"^        (\w+):", part[part.index(kind) + 1], re.M))
        assert rows and all(set(row) == keys for row in rows), (kind, set(rows[0]) ^ keys)


with tempfile.TemporaryDirectory() as work:
    share, control = work + "/share", work + "/control"
    os.mkdir(share, 0o700)
    try:
        for kind in ("latency", "best-effort"):
            start(weir, "run", "--sim", "--share", share, "--class", kind, "--", steady, ready="runs")
        start(weir, "record", "--sim", "-q", "-o", work + "/a.weir", "--", steady, ready="runs")
        monitor, line = start(weir, "monitor", "--listen", "127.0.0.1:0", "--control", control, "--share", share,
                              ready="http://127.0.0.1:")
        port = int(re.search(r":(\d+)/metrics", line).group(1))
        names, _ = check_metrics()
        check_clients()
        check_control()
        check_openapi()
        check_deploy(names)
        # A second one finds the address taken, and says so; the first goes on.
        second = subprocess.run([weir, "monitor", "--listen", "127.0.0.1:%d" % port, "--share", share], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, env=environment)
        assert second.returncode == 3 and b"can't be listened at" in second.stdout, second
        monitor.send_signal(signal.SIGTERM)
        assert monitor.wait(PATIENCE) == 0 and not os.path.exists(control)
    finally:
        for p in started:
            if p.poll() is None:
                p.terminate()
                p.wait()
print("as it should be")
