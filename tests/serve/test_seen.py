"""What a server shows of itself: metrics, what weir top reads, its log."""
import json
import re
import shutil
import subprocess
import unittest

import cases
from server import Repository, Server

repository = Repository("repository").standard()


def values(server):
    """Of /metrics: {(name, labels): value}."""
    text = server.ask("GET", "/metrics").body.decode()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[0] != "#"}


class Seen(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(repository.path)

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
        subprocess.run(["promtool", "check", "metrics"], input=self.server.ask("GET", "/metrics").body, check=True)

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


def lines(path):
    return [json.loads(line) for line in open(path)]


class Log(unittest.TestCase):
    TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    def serve(self, path):
        server = Server(repository.path, "--log=" + str(path))
        self.addCleanup(server.end)
        return server

    def test_a_line_a_request(self):
        path = repository.path.parent / "requests"
        path.unlink(missing_ok=True)
        server = self.serve(path)
        self.assertEqual(server.infer("echo", cases.echo(cases.ROW), {"traceparent": self.TRACE}).code, 200)
        self.assertEqual(server.infer('no"ne', cases.echo(cases.ROW)).code, 404)
        server.wait_for(lambda: sum("/infer" in line["route"] for line in lines(path)) == 2)
        good, bad = [line for line in lines(path) if "/infer" in line["route"]]
        self.assertEqual((good["model"], good["version"], good["status"], good["rows"]), ("echo", 1, 200, 1))
        self.assertIn("0af7651916cd43dd8448eb211c80319c", good["trace"])
        self.assertRegex(good["time_us"], r"^queue=\d+ batch=1 .*total=\d+$")
        self.assertNotIn("error", good)
        self.assertEqual(bad["status"], 404)
        self.assertIn("ne", bad["error"])
        self.assertGreater(good["ts"], 1600000000)

    def test_a_full_disk_loses_lines_and_counts_them(self):
        server = self.serve("/dev/full")
        for _ in range(3):
            self.assertEqual(server.infer("echo", cases.echo(cases.ROW)).code, 200)
        server.wait_for(lambda: values(server)["weir_serve_log_lost_total"] >= 3)

    def test_a_removed_folder_stops_nothing(self):
        folder = repository.path.parent / "logs"
        folder.mkdir(exist_ok=True)
        server = self.serve(folder / "requests")
        shutil.rmtree(folder)
        self.assertEqual(server.infer("echo", cases.echo(cases.ROW)).code, 200)
        self.assertEqual(server.ask("GET", "/v2/health/ready").code, 200)
        server.wait_for(lambda: values(server)["weir_serve_log_lost_total"] >= 2)


if __name__ == "__main__":
    unittest.main()
