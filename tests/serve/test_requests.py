"""A server that records its requests: each has its stamps, its batch, and the kernels that ran for it."""
import ctypes
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import unittest

import cases
from server import SCRATCH, WEIR, Repository, Server, tensor

scratch = tempfile.TemporaryDirectory()  # a socket's path is short
os.environ["XDG_RUNTIME_DIR"] = scratch.name
os.environ.pop("WEIR_SIM", None)
PARTS = ["socket", "parse", "queue", "gather", "kernels", "copies", "neighbours", "engine", "answer"]
TRACE = "0af7651916cd43dd8448eb211c80319c"
HOUR = "3600000000"


def add_kernels(repository, name, grid):
    """A model of one kernel, and a copy from its input to its output."""
    row = tensor("X", "FP32", -1, 4), tensor("Y", "FP32", -1, 4)
    folder = repository.add(name, [], [])
    (folder / "config.pbtxt").write_text('backend: "kernels"\nmax_batch_size: 4\n')
    (folder / "1" / "model.json").unlink()
    (folder / "1" / "model.ptx").write_text(
        ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry work_%s(.param .u64 a)\n{\n\tret;\n}\n" % name)
    (folder / "1" / "kernels.json").write_text(json.dumps({
        "image": "model.ptx", "inputs": row[:1], "outputs": row[1:], "buffers": [], "launches": [
            {"kernel": "work_" + name, "grid": [grid, 1, 1], "block": [128, 1, 1], "arguments": [{"buffer": "X"}]},
            {"copy": {"from": "X", "to": "Y", "bytes": {"rows": 16}}}]}))


def report(path, *options):
    done = subprocess.run([WEIR, "report", *options, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--json" in options else done.stdout


class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        repository = Repository("requests").quick()
        add_kernels(repository, "small", 4000)
        add_kernels(repository, "large", 400000)
        cls.path = pathlib.Path(SCRATCH) / "requests.weir"
        cls.path.unlink(missing_ok=True)
        server = Server(repository.path, "--sim", "-o", str(cls.path))
        cls.answers = {}
        ask = lambda model, row=cases.ROW, **headers: server.infer(
            model, cases.echo(row), dict({k.replace("_", "-"): v for k, v in headers.items()}, **{"Weir-Time": "1"}))
        number = lambda answer: int(answer.headers["weir-time"].split("request=")[1])
        for what, model, headers in (
                ("plain", "small", {}), ("met", "large", {"Weir_Deadline_Us": HOUR}),
                ("refused", "small", {"Weir_Deadline_Us": "1"}), ("unknown", "nobody", {}),
                ("traced", "small", {"traceparent": "00-%s-b7ad6b7169203331-01" % TRACE})):
            cls.answers[number(ask(model, **headers))] = what
        threads = [threading.Thread(target=lambda m: cls.answers.setdefault(number(ask(m)), "together"), args=(m,))
                   for m in ("small", "large") * 8]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.end() == 0, server.said()
        cls.said = server.said()
        cls.rows = {row["id"]: row for row in report(cls.path, "--json", "--only", "requests")["requests"]}

    def row(self, what):
        return self.rows[next(number for number, w in self.answers.items() if w == what)]

    def test_each_request_is_there_once(self):
        self.assertEqual(sorted(self.rows), list(range(1, len(self.answers) + 1)))
        self.assertIn("%d requests" % len(self.answers), self.said)

    def test_outcomes(self):
        for what, outcome in (("plain", "answered"), ("met", "met"), ("refused", "refused"), ("unknown", "failed"),
                              ("traced", "answered"), ("together", "answered")):
            self.assertEqual(self.row(what)["outcome"], outcome, what)
        self.assertIsNone(self.row("unknown")["model"])
        self.assertEqual(self.row("traced")["trace_id"], TRACE)
        self.assertIsNone(self.row("plain")["trace_id"])
        self.assertEqual(self.row("met")["deadline_ns"], int(HOUR) * 1000)

    def test_parts_add_up(self):
        for row in self.rows.values():
            self.assertEqual(sum(row[part + "_ns"] for part in PARTS), row["total_ns"], row)
            self.assertEqual(row[row["cause"] + "_ns"], max(row[part + "_ns"] for part in PARTS))

    def test_one_request(self):
        for what, kernels in (("met", ["work_large"]), ("plain", ["work_small"]), ("refused", []), ("unknown", [])):
            row = self.row(what)
            said = report(self.path, "--json", "--request", str(row["id"]))
            self.assertEqual(said["request"], row)
            self.assertEqual([a["name"] for a in said["request_gpu_trace"] if a["kind"] == "kernel"], kernels, what)
            self.assertEqual(sum(b["ns"] for b in said["request_behind"]) > 0, row["behind"] is not None)
        for number in ("0", "1000", "-1", "x", ""):
            done = subprocess.run([WEIR, "report", "--request=" + number, str(self.path)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""), number)

    def test_otlp(self):
        """A trace for each request, or the client's; its spans lie in the request's and cover it."""
        done = subprocess.run([WEIR, "export", "-f", "otlp", str(self.path)], capture_output=True, text=True, check=True)
        (server,) = json.loads(done.stdout)["resourceSpans"]
        spans = server["scopeSpans"][0]["spans"]
        self.assertEqual(len({span["spanId"] for span in spans}), len(spans))
        whole = [span for span in spans if span["kind"] == 2]
        self.assertEqual(len(whole), len(self.rows))
        for span in whole:
            attributes = {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
            row = self.rows[int(attributes["weir.request"])]
            inside = [s for s in spans if s.get("parentSpanId") == span["spanId"]]
            length = lambda s: int(s["endTimeUnixNano"]) - int(s["startTimeUnixNano"])
            self.assertEqual({s["traceId"] for s in inside}, {span["traceId"]})
            self.assertEqual([sum(map(length, inside)), length(span)], [row["total_ns"]] * 2)
            self.assertEqual([int(attributes["weir.%s_ns" % part]) for part in PARTS], [row[part + "_ns"] for part in PARTS])
            self.assertEqual(span["status"]["code"], 2 if row["outcome"] in ("failed", "refused", "shed") else 0)
            if row["trace_id"]:
                self.assertEqual((span["traceId"], span["parentSpanId"]), (TRACE, "b7ad6b7169203331"))
            else:
                self.assertNotIn("parentSpanId", span)
        self.assertGreater(min(int(span["startTimeUnixNano"]) for span in spans), 1.7e18)

    def test_each_request_has_the_kernels_of_its_batch(self):
        ran = [row for row in self.rows.values() if row["batch"] is not None]
        self.assertEqual(len(ran), len(self.rows) - 2)
        for row in ran:
            self.assertGreater(row["kernels_ns"] + row["neighbours_ns"], 0, row)
            self.assertGreaterEqual(row["batch_rows"], row["rows"])
        batches = {}
        for row in ran:
            batches.setdefault(row["batch"], []).append(row)
        for rows in batches.values():
            self.assertEqual({row["batch_requests"] for row in rows}, {len(rows)})
            self.assertEqual(sum(row["rows"] for row in rows), rows[0]["batch_rows"])
        # … and no other kernels are in its batches.
        kernels = {(k["range"], k["name"]): k["count"] for k in
                   report(self.path, "--json", "--only", "range_kernels")["range_kernels"] if k["kind"] == "kernel"}
        count = lambda model: len({row["batch"] for row in ran if row["model"] == model})
        self.assertEqual(kernels, {(m, "work_" + m): count(m) for m in ("small", "large")})


class WithoutGpu(unittest.TestCase):
    """Models of the processor alone: the recording has requests and no CUDA call."""

    @classmethod
    def setUpClass(cls):
        cls.path = pathlib.Path(SCRATCH) / "without_gpu.weir"
        cls.path.unlink(missing_ok=True)
        server = Server(Repository("without_gpu").quick().path, "--alone", "-o", str(cls.path))
        for _ in range(5):
            server.infer("echo", cases.echo(cases.ROW), {})
        assert server.end() == 0, server.said()
        cls.said = server.said()

    def test_the_report_begins_with_them(self):
        self.assertIn("weir: 5 requests; ", self.said)
        self.assertNotIn("call", self.said.split("weir: 5 requests")[1])
        lines = report(self.path).splitlines()
        self.assertRegex(lines[1], r"^The server answered 5 of 5 requests\. Their median time was .*, the p99 ")
        self.assertRegex(lines[3], r"^First: weir report --request [1-5] says why the slowest took ")
        self.assertLess(lines.index("Requests by time"), lines.index("Totals"))

    def test_nobody_measured_what_ran_on_gpus(self):
        for row in report(self.path, "--json", "--only", "requests")["requests"]:
            self.assertEqual([row[key] for key in ("kernels_ns", "copies_ns", "neighbours_ns", "beside_ns")], [None] * 4)
            self.assertEqual(sum(row[part + "_ns"] or 0 for part in PARTS), row["total_ns"])
        done = subprocess.run([WEIR, "export", "-f", "otlp", str(self.path)], capture_output=True, text=True, check=True)
        self.assertIn("weir.engine_ns", done.stdout)
        self.assertNotIn("weir.kernels_ns", done.stdout)


class Started(unittest.TestCase):
    """A server that can neither record nor share goes on alone, or says why it does not start."""

    def setUp(self):
        self.path = Repository("started").quick().path

    def start(self, *options):
        server = Server(self.path, *options)
        children = pathlib.Path("/proc/%d/task/%d/children" % (server.process.pid, server.process.pid)).read_text().split()
        self.assertEqual(server.end(), 0)
        return children, server.said()

    def test_without_a_driver_nothing_changes(self):
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            pass
        else:
            self.skipTest("there is a driver")
        children, said = self.start()
        self.assertEqual(children, [])
        self.assertNotIn("shares no GPU", said)

    def test_with_a_driver_it_shares(self):
        self.assertEqual(len(self.start("--sim")[0]), 1)
        self.assertEqual(self.start("--sim", "--alone")[0], [])

    def test_without_a_place_to_share_it_serves_alone(self):
        os.environ["XDG_RUNTIME_DIR"] = "/dev/null"
        self.addCleanup(os.environ.update, XDG_RUNTIME_DIR=scratch.name)
        children, said = self.start("--sim")
        self.assertEqual(children, [])
        self.assertIn("the server shares no GPU with other programs", said)

    def test_in_another_recording_it_does_not_begin_one(self):
        path = pathlib.Path(SCRATCH) / "inner.weir"
        done = subprocess.run([WEIR, "serve", "-o", str(path), str(self.path)], capture_output=True, text=True,
                              env=dict(os.environ, WEIR="join,record:/nowhere"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("nothing can be recorded", done.stderr)
        self.assertFalse(path.exists())


if __name__ == "__main__":
    unittest.main()
