"""weir monitor as Prometheus and others meet it, on loopback: monitor.py BUILD SOURCE.

Metrics of programs that share, of recorded ones and of GPUs; bad requests, clients that send a byte and wait, and a
thousand connections, none of which stops it; the socket, and the token, with which things are changed; a kernel that
becomes slower; and that alert rules and the dashboard ask for nothing that /metrics does not have.  promtool checks the
rest where it is installed (PROMTOOL, or in PATH); cli.prometheus has Prometheus itself.
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


def start(*command, ready, **more):
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(environment, **more))
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


def ask(method, path, code, body=None, headers={}, at=None):
    """On the Unix socket, or at a port."""
    c = http.client.HTTPConnection("127.0.0.1", at, timeout=PATIENCE)
    if not at:
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(control)
    c.request(method, path, body, headers)
    answer = c.getresponse()
    text = answer.read().decode()
    assert answer.status == code, (method, path, body, answer.status, text)
    if code == 405:
        assert answer.headers["Allow"], path
    if code == 401:
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    c.close()
    got = json.loads(text) if text.startswith("{") else None
    assert code < 400 or got["error"], text
    return got


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


def check_histogram(m, name):
    """Each program has buckets that grow, up to all that ended; all of it is within the sum."""
    of_program = {}
    for labels, value in m[name + "_bucket"].items():
        labels = dict(labels)
        of_program.setdefault(labels["pid"], []).append((float(labels["le"]), value))
    counts = {dict(k)["pid"]: v for k, v in m[name + "_count"].items()}
    sums = {dict(k)["pid"]: v for k, v in m[name + "_sum"].items()}
    assert of_program and set(of_program) == set(counts) == set(sums)
    for pid, buckets in of_program.items():
        buckets.sort()
        assert [n for _, n in buckets] == sorted(n for _, n in buckets) and buckets[-1][0] == float("inf")
        assert buckets[-1][1] == counts[pid] > 0
        low = sum((n - before) * le for (le, before), (_, n) in zip(buckets, buckets[1:]))
        high = sum((n - before) * le for (_, before), (le, n) in zip([(0, 0)] + buckets[:-1], buckets[:-1]))
        assert low <= sums[pid] * 1.0001 and sums[pid] <= high * 1.0001 + (counts[pid] - buckets[-2][1]) * 1e6


def check_metrics():
    text = get()
    m = samples(text)
    typed = set(re.findall(r"^# TYPE (\w+) ", text, re.M))
    histogram = "weir_program_request_seconds"
    assert set(k for k in m) <= typed | {histogram + s for s in ("_bucket", "_sum", "_count")}, "a metric without a type"
    check_histogram(m, histogram)
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
    # Counters grow.
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
    get("/v1/policy?policy=strict", method="PUT", code=404)
    get(method="DELETE", code=405)
    get("/" + "a" * 100000, code=414)
    for bad in (b"nonsense\r\n\r\n", b"GET /metrics\r\n\r\n", b"\0" * 4096, b"GET /metrics HTTP/1.1\r\nContent-Length: x\r\n\r\n"):
        raw(bad, answer=False)[0].close()
    # A client that begins and does not go on, or does not read, stands in nobody's way.
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
    check_dripping()
    assert monitor.poll() is None


def check_dripping():
    """As many clients as there may be, who all send a byte now and then: their time ends, and others are answered."""
    drips = []
    for _ in range(2100):
        s = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        s.sendall(b"GET /m")
        drips.append(s)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            get("/healthz")
            break
        except (OSError, http.client.HTTPException):
            assert time.monotonic() < end, "those who drip shut everyone out"
        time.sleep(0.5)
        for s in drips:
            try:
                s.sendall(b"a")
            except OSError:
                pass
    for s in drips:
        s.close()


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
                       ("/v1/policy?policy=none", 400), ("/v1/policy", 400), ("/v1", 404), ("/v1/programs", 405),
                       ("/v1/regressions/0123456789abcdef?to=accepted", 404), ("/v1/regressions/1?to=accepted", 404)):
        ask("PUT", path, code)
    ask("PUT", "/v1/policy", 204, '{"policy": "fair"}')
    assert ask("GET", "/v1/policy", 200)["policy"] == "fair"
    for body, code in (("{", 400), ("[]", 400), ('"fair"', 400), ('{"policy": 1}', 400), ('{"policy": "fair", "x": "y"}', 400),
                       ('{"policy": "fair", "policy": "edf"}', 400), ('{"class": "latency"}', 400), ("\0", 400),
                       ('{"policy": "%s"}' % ("a" * 1000), 400), ("{" * 4000, 400), ("x" * 5000, 413)):
        ask("PUT", "/v1/policy", code, body)
    assert ask("GET", "/v1/policy", 200)["policy"] == "fair"
    ask("DELETE", "/v1/policy", 405)


def recording(pid):
    return next((r for r in ask("GET", "/v1/recordings", 200)["recordings"] if r["pid"] == pid), None)


def until_recording(pid, what):
    end = time.monotonic() + PATIENCE
    while True:
        r = recording(pid)
        if r and what(r):
            return r
        assert time.monotonic() < end, ("it never came", r)
        time.sleep(0.05)


def check_recordings(work):
    """A program that was started with recording off is switched on, and others can't be."""
    recorder, line = start(weir, "record", "--sim", "-q", "-l", "off", "-o", work + "/off.weir", "--", "sh", "-c",
                           "echo $$ runs; exec " + steady, ready=r"\d+ runs")
    pid = int(line.split()[0])
    path = "/v1/recordings/%d" % pid
    r = until_recording(pid, lambda r: True)
    assert r["level"] == "off" and r["program"] == "steady" and r["file"] == work + "/off.weir" and not r["flight"], r
    ask("PUT", path, 204, '{"to": "on"}')
    until_recording(pid, lambda r: r["level"] == "full" and r["launches"] > 0)
    ask("PUT", path + "?to=work", 204)
    ask("PUT", path, 204, '{"to": "args"}')
    until_recording(pid, lambda r: r["level"] == "work" and r["args"])
    ask("PUT", path, 204, '{"to": "off"}')
    until_recording(pid, lambda r: r["level"] == "off")
    for body, code in (('{"to": "loud"}', 400), ('{"level": "off"}', 400), ("", 400)):
        ask("PUT", path, code, body)
    ask("PUT", path, 204, '{"to": "stop"}')
    assert until_recording(pid, lambda r: r["stopped"])["stopped"] == "asked"
    assert "stopped" in ask("PUT", path, 409, '{"to": "on"}')["error"]
    # One that is not there, one that is not recorded, one of somebody else.
    assert "no process" in ask("PUT", "/v1/recordings/%d" % (2 ** 31 - 1), 404, '{"to": "on"}')["error"]
    ask("PUT", "/v1/recordings/-1", 404, '{"to": "on"}')
    assert "not being recorded" in ask("PUT", "/v1/recordings/%d" % os.getpid(), 404, '{"to": "on"}')["error"]
    stranger = subprocess.Popen(["sleep", "1000"], user=65534, cwd="/") if os.getuid() == 0 else None
    if stranger:
        started.append(stranger)
    foreign = stranger.pid if stranger else 1
    for path in ("/v1/recordings/%d?to=on" % foreign, "/v1/programs/%d/class?class=latency" % foreign):
        assert "another user" in ask("PUT", path, 403)["error"]
    recorder.terminate()
    recorder.wait()


def check_token(work):
    def token(text, mode=0o600):
        with open(work + "/token", "w") as f:
            f.write(text)
        os.chmod(work + "/token", mode)
        return work + "/token"

    def refused(*options):
        p = subprocess.run([weir, "monitor", "--listen", "127.0.0.1:0", "--share", share, *options], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, env=environment, timeout=PATIENCE)
        return p.returncode == 2 and p.stdout.decode()
    word = "correcthorsebatterystaple"
    assert "an address and a port are needed" in refused("--listen", "127.0.0.1:65536")
    assert "others may read it" in refused("--token", token(word, 0o644))
    assert "one word" in refused("--token", token("short"))
    assert "one word" in refused("--token", token("two words that are long enough"))
    assert "can't be read" in refused("--token", work + "/none")
    os.symlink(token(word), work + "/link")
    assert "can't be read" in refused("--token", work + "/link")
    other, line = start(weir, "monitor", "--listen", "127.0.0.1:0", "--token", token(word + "\n"), "--share", share,
                        ready="http://127.0.0.1:")
    at = int(re.search(r":(\d+)/metrics", line).group(1))
    ask("GET", "/metrics", 200, at=at)
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer " + word + "r"},
                    {"Authorization": "Bearer " + word[:-1] + "f"}, {"Authorization": "Basic " + word}):
        ask("GET", "/v1/programs", 401, headers=headers, at=at)
        ask("PUT", "/v1/policy", 401, '{"policy": "edf"}', headers, at)
    right = {"Authorization": "Bearer " + word}
    ask("PUT", "/v1/policy", 204, '{"policy": "edf"}', right, at)
    assert ask("GET", "/v1/policy", 200, headers=right, at=at)["policy"] == "edf"
    ask("GET", "/v1/nothing", 404, headers=right, at=at)
    other.terminate()
    assert other.wait(PATIENCE) == 0


def check_regressions(work):
    """A kernel that takes longer in a later run is found, with evidence; what is kept survives a restart."""
    def watch():
        p, line = start(weir, "monitor", "--listen", "127.0.0.1:0", "--control", work + "/slow", "--share", work + "/none",
                        "--window", "50ms", "--interval", "100ms", "--json", "--baseline", work + "/baseline",
                        ready="http://127.0.0.1:")
        return p, int(re.search(r":(\d+)/metrics", line).group(1))

    name = "serve-%d" % os.getpid()  # whatever this user records is seen
    shutil.copy(steady, work + "/" + name)

    def run(wave):
        p, _ = start(weir, "record", "--sim", "--gpu", "-q", "-o", work + "/slow.weir", "--", work + "/" + name, ready="runs",
                     WEIR_SIM="time=real,wave=%dus" % wave)
        return p

    def view(what):
        end = time.monotonic() + PATIENCE
        while True:
            got = ask("GET", "/v1/regressions?program=" + name, 200)
            if what(got):
                return got
            assert time.monotonic() < end, ("it never came", got)
            time.sleep(0.1)
    global control
    before, control = control, work + "/slow"
    os.mkdir(work + "/none", 0o700)
    p, at = watch()
    fast = run(300)
    view(lambda v: v["series_known"] >= 1)
    fast.terminate()
    fast.wait()
    assert view(lambda v: True)["firing"] == 0
    slow = run(360)
    v = view(lambda v: v["firing"] == 1)
    r = v["regressions"][0]
    assert r["kind"] == "kernel" and r["program"] == name and r["found_by"] == "step", r
    assert 1.1 < r["slowdown_ratio"] < 1.3 and r["p"] <= r["p_needed"] < 1e-6, r
    assert r["windows_before"] >= 48 and r["windows_after"] == 24, r
    text = http.client.HTTPConnection("127.0.0.1", at, timeout=PATIENCE)
    text.request("GET", "/metrics")
    m = samples(text.getresponse().read().decode())
    ratio, = (v for labels, v in m["weir_regression_slowdown_ratio"].items() if dict(labels)["id"] == r["id"])
    assert 1.1 < ratio < 1.3 and m["weir_regressions_firing"][()] >= 1, m
    news = json.loads(p.stdout.readline())
    while news["id"] != r["id"]:
        news = json.loads(p.stdout.readline())
    assert set(news) == set(r), news
    keys = described("Regression")
    assert set(r) == keys and set(v) == described("Regressions"), (set(r) ^ keys, set(v))
    p.terminate()
    assert p.wait(PATIENCE) == 0 and stat.S_IMODE(os.stat(work + "/baseline").st_mode) == 0o600
    # A restart neither forgets nor ends it.
    p, at = watch()
    assert view(lambda v: True)["firing"] == 1
    ask("PUT", "/v1/regressions/" + r["id"], 400, '{"to": "ignored"}')
    ask("PUT", "/v1/regressions/" + r["id"], 204, '{"to": "accepted"}')
    assert view(lambda v: True)["firing"] == 0
    slow.terminate()
    p.terminate()
    assert p.wait(PATIENCE) == 0
    with open(work + "/baseline", "r+b") as f:
        f.seek(100)
        f.write(b"damaged")
    bad = subprocess.run([weir, "monitor", "--listen", "127.0.0.1:0", "--baseline", work + "/baseline"], env=environment,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert bad.returncode == 2 and b"checksum" in bad.stdout and b"Remove it" in bad.stdout, bad
    control = before


def described(kind):
    text = open(source + "/docs/reference/openapi.yaml").read()
    part = re.split(r"^    (\w+):$", text[text.index("  schemas:"):], flags=re.M)
    return set(re.findall(r"^        (\w+):", part[part.index(kind) + 1], re.M))


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


def required(kind):
    """The keys that are always there: all, where nothing else is said."""
    text = open(source + "/docs/reference/openapi.yaml").read()
    said = re.search(r"^    %s:\n(?:      .*\n)*?      required: \[(.*)\]$" % kind, text, re.M)
    return set(said.group(1).split(", ")) if said else described(kind)


def check_openapi():
    """Every path and method of openapi.yaml is answered, and every key of the JSON is described there."""
    text = open(source + "/docs/reference/openapi.yaml").read()
    paths = re.split(r"^  (/\S+):$", text[:text.index("\ncomponents:")], flags=re.M)[1:]
    assert len(paths) >= 18, paths
    for path, methods in zip(paths[::2], paths[1::2]):
        for method in re.findall(r"^    (get|put):$", methods, re.M):
            if path in ("/metrics", "/healthz"):
                get(path)
            else:
                ask(method.upper(), path.replace("{pid}", "1").replace("{id}", "0" * 16), {"get": 200, "put": 400}[method])
    view = ask("GET", "/v1/programs", 200)
    recordings = ask("GET", "/v1/recordings", 200)["recordings"]
    for kind, rows in (("Program", view["programs"]), ("Gpu", view["gpus"]), ("View", [view]), ("Recording", recordings)):
        keys, always = described(kind), required(kind)
        assert rows and all(always <= set(row) <= keys for row in rows), (kind, set(rows[0]) ^ keys)


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
        check_recordings(work)
        check_openapi()
        check_token(work)
        check_regressions(work)
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
