"""A server shows this of itself: metrics, what weir top reads, its memory."""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import cases
from server import WEIR, Repository, Server, tensor, values

repository = Repository("repository").quick()
scratch = tempfile.TemporaryDirectory()  # a socket's path is short
os.environ["XDG_RUNTIME_DIR"] = scratch.name
runtime = pathlib.Path(scratch.name) / "weir"


class Seen(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(Repository("standard").standard().path)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.end() == 0

    def model(self, name):
        return next(m for m in self.server.ask("GET", "/v2/weir/models").json["models"] if m["name"] == name)

    def ask(self, model="echo", **headers):
        return self.server.infer(model, cases.echo(cases.ROW), {k.replace("_", "-"): v for k, v in headers.items()})

    def test_latency_is_a_histogram(self):
        before = values(self.server)
        for _ in range(5):
            self.assertEqual(self.ask().code, 200)
        after = values(self.server)
        for name, longest in (("weir_serve_latency_seconds", "100"), ("nv_inference_first_response_histogram_ms", "5000")):
            labels = 'model="echo",version="1"'
            rose = lambda part, more="": after["%s_%s{%s%s}" % (name, part, labels, more)] - before["%s_%s{%s%s}" % (name, part, labels, more)]
            self.assertEqual(rose("count"), 5)
            self.assertEqual(rose("bucket", ',le="+Inf"'), 5)
            self.assertGreater(rose("sum"), 0)
            bounds = [(float(m[1]), after[key]) for key in after if (m := re.match(name + r'_bucket\{model="echo",version="1",le="([0-9.e-]+)"\}', key))]
            self.assertEqual(bounds, sorted(bounds))
            self.assertEqual([count for _, count in bounds], sorted(count for _, count in bounds))
            self.assertEqual(bounds[-1][0], float(longest))

    def test_promtool_takes_the_metrics(self):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed")
        done = subprocess.run(["promtool", "check", "metrics"], input=self.server.ask("GET", "/metrics").body, capture_output=True)
        said = (done.stdout + done.stderr).decode().splitlines()
        # 3: it would have other names. Triton's are as they are.
        self.assertIn(done.returncode, (0, 3), said)
        self.assertEqual([line for line in said if line and not line.startswith("nv_inference_")], [])

    def test_what_top_reads(self):
        before = self.model("echo")
        for _ in range(3):
            self.assertEqual(self.ask().code, 200)
        self.assertEqual(self.ask(Weir_Deadline_Us="60000000").code, 200)
        self.assertEqual(self.ask(Weir_Deadline_Us="1").code, 429)
        after = self.model("echo")
        for key, rise in (("success", 4), ("met", 1), ("late", 0), ("shed", 0), ("refused", 1), ("failed", 0)):
            self.assertEqual(after[key] - before[key], rise, key)
        self.assertEqual((after["version"], after["engine"], after["queued"], after["max_rows"]), (1, "synthetic", 0, 8))
        self.assertEqual(sum(n for _, n in after["latency_ns"]), after["success"])
        self.assertEqual(sum(rows * n for rows, n in after["batch_rows"]), after["success"])
        self.assertGreater(after["predicted_one_ns"], 0)
        self.assertGreater(after["predicted_max_ns"], 0)


    def test_memory_does_not_grow_with_requests(self):
        row = cases.echo(cases.ROW)
        asked = [(200, Server.bytes_of("POST", "/v2/models/echo/infer", row)), (400, Server.bytes_of("POST", "/v2/models/echo/infer", {})),
                 (404, Server.bytes_of("POST", "/v2/models/none/infer", row)),
                 (429, Server.bytes_of("POST", "/v2/models/echo/infer", row, {"Weir-Deadline-Us": "1"})),
                 (200, Server.bytes_of("GET", "/v2/models/echo"))]

        def ask(times):
            for _ in range(times):
                with self.server.connect() as connection, connection.makefile("rb") as file:
                    connection.sendall(b"".join(request for _, request in asked) * 20 + asked[0][1][:-7])
                    for code, _ in asked * 20:
                        head = [file.readline()]
                        while head[-1] != b"\r\n":
                            head.append(file.readline())
                        self.assertIn(b" %d " % code, head[0])
                        file.read(next(int(line[15:]) for line in head if line.startswith(b"Content-Length:")))
            self.server.wait_for(lambda: values(self.server)["weir_serve_request_bytes"] < 4096)  # the half of one is given back
            status = pathlib.Path("/proc/%d/status" % self.server.process.pid).read_text()
            return int(re.search(r"VmRSS:\s*(\d+) kB", status)[1])

        before = ask(20)
        self.assertLess(ask(100) - before, 250, "KiB, of 10,000 requests")

    def settings(self, **change):
        return self.server.ask("POST", "/v2/weir/settings", change)

    def test_settings_change_while_it_runs(self):
        first = self.server.ask("GET", "/v2/weir/settings").json
        self.assertEqual((first["policy"], first["class_weights"]), ("slack", [8, 4, 2, 1]))
        self.assertEqual(first["models"]["echo"], {"max_queue": 4096, "max_delay_us": 0, "weight": 1, "deadline_us": 0})
        self.assertEqual(first["models"]["narrow"]["max_queue"], 2)
        change = {"policy": "edf", "class_weights": [16, 4, 2, .5],
                  "models": {"echo": {"max_queue": 5, "max_delay_us": 700, "weight": 2.5, "deadline_us": 1}}}
        now = self.settings(**change).json
        self.assertEqual({k: now[k] for k in ("policy", "class_weights")}, {k: change[k] for k in ("policy", "class_weights")})
        self.assertEqual(now["models"]["echo"], change["models"]["echo"])
        self.assertEqual(self.server.ask("GET", "/v2/weir/settings").json, now)
        self.assertEqual(self.ask().code, 429)  # its deadline is now one microsecond
        self.assertEqual(self.settings(**first).json, first)
        self.assertEqual(self.ask().code, 200)

    def test_a_wrong_setting_changes_none(self):
        first = self.server.ask("GET", "/v2/weir/settings").json
        for code, part, change in (
                (400, "policy", {"policy": "best"}), (400, "class_weights", {"class_weights": [1, 2, 3]}),
                (400, "weight", {"class_weights": [1, 2, 3, 0]}), (400, "speed", {"speed": 1}), (400, "object", {"models": 1}),
                (404, "nobody", {"models": {"nobody": {}}}), (400, "object", {"models": {"echo": 7}}),
                (400, "max_queue", {"models": {"echo": {"max_queue": 5000}}}), (400, "from 1 to 2", {"models": {"narrow": {"max_queue": 3}}}),
                (400, "max_queue", {"models": {"echo": {"max_queue": 0}}}), (400, "deadline_us", {"models": {"echo": {"deadline_us": -1}}}),
                (400, "max_delay_us", {"models": {"echo": {"max_delay_us": "1"}}}), (400, "weight", {"models": {"echo": {"weight": -2}}}),
                (400, "'size'", {"models": {"echo": {"weight": 3, "size": 1}}})):
            answer = self.settings(**dict({"policy": "fifo"}, **change))
            self.assertEqual(answer.code, code, (change, answer))
            self.assertIn(part, answer.json["error"])
        self.assertEqual(self.server.ask("GET", "/v2/weir/settings").json, first)


class Loaded(unittest.TestCase):
    """The memory of models, with a model of 16 MB."""

    def test_a_model_that_is_loaded_anew_takes_no_more_memory(self):
        build = pathlib.Path(os.environ["WEIR_BUILD"])
        if not (build / "lib" / "weir" / "libonnxruntime.so.1").exists():
            self.skipTest("ONNX Runtime is not there: make onnxruntime")
        models = Repository("large")
        subprocess.run(["sh", pathlib.Path(__file__).parent / "make_repo.sh", models.path / "all"], check=True)
        server = Server(models.path / "all", "--model-control=explicit", "--load-model=mlp")
        self.addCleanup(server.end)
        anonymous = lambda: int(re.search(r"RssAnon:\s*(\d+) kB", pathlib.Path("/proc/%d/status" % server.process.pid).read_text())[1])
        before = anonymous()
        for _ in range(3):
            self.assertEqual(server.ask("POST", "/v2/repository/models/mlp/load").code, 200)
            self.assertEqual(server.ask("POST", "/v2/repository/models/mlp/unload").code, 200)
        self.assertEqual(server.ask("POST", "/v2/repository/models/mlp/load").code, 200)
        server.wait_for(lambda: anonymous() < before + 20000)


class Simulated(unittest.TestCase):
    """`weir whatif --serve` asks for the queues that the server has."""

    CONFIGS = [None, "", "max_batch_size: 0", "max_batch_size: 3", "dynamic_batching { }", 'input { name: "X" }', 'input { name: "X" } output { name: "Y" }',
               "max_batch_size: 6 dynamic_batching { max_queue_delay_microseconds: 500 default_queue_policy { max_queue_size: 9 } }",
               'max_batch_size: 8 parameters { key: "weir.weight" value { string_value: "2.5" } }']

    def test_the_simulation_has_the_queues_of_the_server(self):
        models = Repository("simulated")
        for i, config in enumerate(self.CONFIGS):
            folder = models.add("m%d" % i, [tensor("X", "FP32", -1, 4)], [tensor("Y", "FP32", -1, 4)])
            (folder / "config.pbtxt").write_text('backend: "synthetic"\n%s\n' % config)
            if config is None:
                (folder / "config.pbtxt").unlink()
        server = Server(models.path, "--delay=3ms")
        self.addCleanup(server.end)
        said = subprocess.run([WEIR, "whatif", "--json", "--serve", models.path, "--delay=3ms", "--arrivals=poisson:100", "--seconds=1"],
                              capture_output=True, check=True, text=True).stdout
        simulated = {m["model"]: m for m in json.loads(said)["models"]}
        settings = server.ask("GET", "/v2/weir/settings").json["models"]
        self.assertEqual(set(simulated), {"m%d" % i for i in range(len(self.CONFIGS))})
        for name, m in simulated.items():
            config = server.ask("GET", "/v2/models/%s/config" % name).json
            self.assertEqual(m["max_rows"], config["max_batch_size"] or 1, name)
            self.assertEqual((m["max_queue"], m["max_delay_ns"], m["weight"]),
                             (settings[name]["max_queue"], settings[name]["max_delay_us"] * 1000, settings[name]["weight"]), name)
        self.assertEqual([simulated["m%d" % i]["max_rows"] for i in range(7)], [4, 4, 1, 3, 4, 4, 1])
        self.assertEqual([simulated["m%d" % i]["max_delay_ns"] for i in (0, 4, 7)], [3000000, 3000000, 500000])


def top(*options):
    return subprocess.run([WEIR, "top", "--once", "--interval=200ms", *options], capture_output=True, text=True, check=True).stdout


class Top(unittest.TestCase):
    def setUp(self):
        self.server = Server(repository.path)
        self.addCleanup(self.server.end)

    def models(self, until):
        """One look after another, since a busy machine may answer too late for one."""
        for _ in range(100):
            rows = {m["model"]: m for m in json.loads(top("--json"))["models"] if m["pid"] == self.server.process.pid}
            if until(rows):
                return rows
        raise AssertionError(rows)

    def keep_asking(self):
        end = threading.Event()

        def client():
            while not end.is_set():
                self.server.infer("echo", cases.echo(cases.ROW))
                self.server.infer("echo", cases.echo(cases.ROW), {"Weir-Deadline-Us": "1"})
        thread = threading.Thread(target=client)
        thread.start()
        self.addCleanup(lambda: (end.set(), thread.join()))

    def test_models_are_listed(self):
        self.keep_asking()
        row = self.models(lambda rows: "mean_batch_rows" in rows.get("echo", {}))["echo"]
        self.assertGreater(row["requests_per_s"], 0)
        self.assertGreaterEqual(row["p99_ns"], row["p50_ns"])
        self.assertTrue(.2 < row["missed"] < .8, row)
        self.assertEqual(row["mean_batch_rows"], 1)
        self.assertGreater(row["refused"], 0)
        for _ in range(100):
            text = top()
            if "echo" in text:
                break
        self.assertRegex(text, r"pid +requests/s +p50 +p99 +missed +queued +mean batch +version +model")
        self.assertRegex(text, r"(?m)^ *%d .* 1 +echo$" % self.server.process.pid)

    def test_one_that_nobody_asks_has_no_rates(self):
        row = self.models(lambda rows: rows.get("two", {}).get("requests_per_s") == 0)["two"]
        self.assertFalse({"p50_ns", "p99_ns", "missed", "mean_batch_rows"} & set(row), row)

    def test_wrong_and_hung_servers_delay_nothing_and_are_left_out(self):
        answers = {90001: None, 90002: b"", 90003: b"HTTP/1.1 200 OK\r\n\r\n[[[[", 90004: b'HTTP/1.1 200 OK\r\n\r\n{"models": [1, {"name": 3}, '
                   b'{"name": "bad\\u001b", "success": -5, "latency_ns": [[9, 1], [3, 2], 5], "batch_rows": {}}]}', 90005: b"x" * (5 << 20)}
        ends = threading.Event()

        def serve(listener, answer):
            while not ends.is_set():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    continue
                with connection:
                    if answer is None:
                        ends.wait()
                    try:
                        connection.recv(1000)
                        connection.sendall(answer or b"")
                    except OSError:
                        pass
        for pid, answer in answers.items():
            listener = socket.socket(socket.AF_UNIX)
            path = runtime / ("serve-%d.sock" % pid)
            listener.bind(str(path))
            listener.listen()
            listener.settimeout(.1)
            thread = threading.Thread(target=serve, args=(listener, answer))
            thread.start()
            self.addCleanup(lambda p=path, t=thread, l=listener: (ends.set(), t.join(), l.close(), p.unlink()))
        self.models(lambda rows: "echo" in rows)
        names = {m["pid"]: m["model"] for m in json.loads(top("--json"))["models"] if m["pid"] > 90000}
        self.assertLessEqual(set(names.items()), {(90004, "bad?")})


class Sockets(unittest.TestCase):
    def ask(self, server):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(runtime / ("serve-%d.sock" % server.process.pid)))
            connection.sendall(server.bytes_of("GET", "/v2/weir/models"))
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            return answer.status

    def test_a_free_size_is_said_to_be_measured_as_1(self):
        server = Server(repository.path)
        server.wait_for(lambda: "ready at" in server.said())
        self.assertRegex(server.said(), "(?m)^flat version 1, synthetic: rows 1 in .*, for inputs of size 1: state their dims")
        self.assertRegex(server.said(), "(?m)^echo version 1, synthetic: rows 1 in .* [mu]?s$")
        self.assertEqual(server.end(), 0)

    def test_this_user_needs_no_token_there(self):
        token = repository.path.parent / "token"
        token.write_text("word\n")
        server = Server(repository.path, "--token=" + str(token), wait=False)
        server.wait_for(lambda: server.ask("GET", "/v2/health/live").code == 401)
        server.wait_for(lambda: "ready at" in server.said())
        self.assertEqual(self.ask(server), 200)
        self.assertEqual(server.ask("GET", "/v2/weir/models").code, 401)
        path = runtime / ("serve-%d.sock" % server.process.pid)
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(server.end(), 0)
        self.assertFalse(path.exists())

    def test_the_socket_of_a_killed_server_goes(self):
        killed = Server(repository.path)
        killed.end(signal.SIGKILL)
        left = runtime / ("serve-%d.sock" % killed.process.pid)
        self.assertTrue(left.exists())
        server = Server(repository.path)
        self.assertFalse(left.exists())
        self.assertEqual(self.ask(server), 200)
        self.assertEqual(server.end(), 0)

    def test_without_a_folder_it_serves_and_says_so(self):
        os.environ["XDG_RUNTIME_DIR"] = "/dev/null"
        self.addCleanup(os.environ.update, XDG_RUNTIME_DIR=scratch.name)
        server = Server(repository.path)
        self.assertIn("weir top can't see this server", server.said())
        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    unittest.main()
