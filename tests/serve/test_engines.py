"""A server that runs the engines of examples/, in host memory and on the simulated GPU."""
import json
import math
import os
import pathlib
import struct
import subprocess
import threading
import unittest

import cases
from server import SCRATCH, WEIR, Repository, Server, tensor

os.environ.pop("WEIR_SIM", None)
EXAMPLES = os.path.join(os.environ["WEIR_BUILD"], "examples", "engines")


def add(repository, name, **model):
    folder = repository.add(name, [], [])
    (folder / "1" / "model.json").unlink()
    (folder / "1" / "engine.json").write_text(json.dumps(model))
    (folder / "config.pbtxt").write_text("max_batch_size: 4\n")


class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        repository = Repository("engines").standard()
        add(repository, "three", engine="scale", factor=3)
        add(repository, "shift", engine="shift")
        add(repository, "away", engine="away")
        cls.server = Server(repository.path, "--sim", "--engines=" + EXAMPLES, wait=False)
        cls.server.wait_for(lambda: all(cls.server.ask("GET", "/v2/models/%s/ready" % m).code == 200 for m in ("echo", "three", "shift")))

    @classmethod
    def tearDownClass(cls):
        assert cls.server.end() == 0

    def test_an_engine_in_host_memory_answers(self):
        self.assertEqual(self.server.ask("GET", "/v2/models/three/config").json["backend"], "engine")
        answer = self.server.infer("three", cases.echo([1, 2, 3, 4], [5, 6, 7, 8]))
        self.assertEqual(answer.json["outputs"][0]["data"], [3, 6, 9, 12, 15, 18, 21, 24])

    def test_a_fault_is_500_with_the_engines_sentence_and_the_next_request_runs(self):
        row = [1, 2, 3, 4]
        numbers = struct.pack("<4f", 1, 2, math.inf, 4)  # JSON has no infinity
        body, headers = cases.with_blobs({"inputs": [cases.blob_of("X", "FP32", [1, 4], len(numbers))]}, numbers)
        answer = self.server.infer("three", body, headers)
        self.assertEqual(answer.code, 500, answer)
        self.assertIn("number 2 of X is not finite", answer.json["error"])
        self.assertEqual(self.server.infer("three", cases.echo(row)).code, 200)

    def test_an_engine_on_the_gpu_answers_by_graphs(self):
        body = {"inputs": [dict(tensor("X", "UINT8", 2, 8), data=list(range(1, 17)))]}
        for _ in range(4):
            answer = self.server.infer("shift", body)
            self.assertEqual(answer.json["outputs"][0]["data"], [7] + list(range(1, 16)))
        stats = self.server.ask("GET", "/v2/models/shift/stats").json["model_stats"][0]
        self.assertGreaterEqual(stats["weir_graph_replays"], 3, stats)
        self.assertNotIn("weir_no_graphs", stats)

    def test_an_engine_that_is_not_there_fails_its_model_alone(self):
        self.assertNotEqual(self.server.ask("GET", "/v2/models/away/ready").code, 200)
        self.assertRegex(self.server.said(), "model away: engine away is not there: .*away.so")


class Large(unittest.TestCase):
    """Rows that are copied to where the device reads them while it runs others."""

    def test_each_client_has_its_own_rows_back(self):
        repository = Repository("large")
        spec = tensor("X", "UINT8", -1, 100000), tensor("Y", "UINT8", -1, 100000)
        folder = repository.add("wide", [], [])
        (folder / "config.pbtxt").write_text('backend: "kernels"\nmax_batch_size: 4\n')
        (folder / "1" / "model.json").unlink()
        (folder / "1" / "model.ptx").write_text(".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry work(.param .u64 a)\n{\n\tret;\n}\n")
        (folder / "1" / "kernels.json").write_text(json.dumps({
            "image": "model.ptx", "inputs": spec[:1], "outputs": spec[1:], "buffers": [], "launches": [
                {"kernel": "work", "grid": [400000, 1, 1], "block": [128, 1, 1], "arguments": [{"buffer": "X"}]},
                {"copy": {"from": "X", "to": "Y", "bytes": {"rows": 100000}}}]}))
        calls = pathlib.Path(SCRATCH) / "calls"
        calls.unlink(missing_ok=True)
        os.environ["WEIR_SIM"] = "time=real,log=%s" % calls
        self.addCleanup(os.environ.pop, "WEIR_SIM")
        server = Server(repository.path, "--sim", "--alone", "--drain-delay=0")
        wrong = []

        def client(seed):
            for turn in range(30):
                rows = (seed + turn) % 3 + 1
                data = (bytes(range(seed + turn, 256)) * 2000)[:100000 * rows]
                body, headers = cases.with_blobs({"inputs": [cases.blob_of("X", "UINT8", [rows, 100000], len(data))],
                                                  "outputs": [{"name": "Y", "parameters": {"binary_data": True}}]}, data)
                if server.infer("wide", body, headers).binary != data:
                    wrong.append((seed, turn))

        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(server.end(), 0)
        counts = dict(line.split() for line in calls.read_text().splitlines())
        # A batch has one copy each way, and one more for each staged request.
        self.assertGreater(int(counts["cuMemcpyHtoDAsync_v2"]), int(counts["cuMemcpyDtoHAsync_v2"]))


class Memory(unittest.TestCase):
    """Three models of 2 MB each, where two find room."""

    def test_models_take_turns_on_the_gpu(self):
        names = ["a", "b", "c"]
        repository = Repository("memory")
        for name in names:
            add(repository, name, engine="shift")
        server = Server(repository.path, "--sim", "--memory=4M", "--engines=" + EXAMPLES)
        for first in range(30):
            body = {"inputs": [dict(tensor("X", "UINT8", 1, 8), data=list(range(first, first + 8)))]}
            for name in names:
                answer = server.infer(name, body)
                self.assertEqual(answer.json["outputs"][0]["data"], [7] + list(range(first, first + 7)))
        stats = {s["name"]: s for s in server.ask("GET", "/v2/models/stats").json["model_stats"]}
        self.assertGreaterEqual(sum(s["weir_cold_loads"] for s in stats.values()), 30)
        there = {name: s["memory_usage"] for name, s in stats.items()}
        self.assertEqual(sorted(map(len, there.values())), [0, 1, 1], there)
        for usage in filter(None, there.values()):
            self.assertEqual(usage, [{"type": "GPU", "id": 0, "byte_size": 2 << 20}])
        metrics = server.ask("GET", "/metrics").body.decode()
        for name in names:
            bytes_there = sum(u["byte_size"] for u in there[name])
            self.assertIn('weir_serve_gpu_bytes{model="%s",version="1"} %d\n' % (name, bytes_there), metrics)
            self.assertIn('weir_serve_cold_loads_total{model="%s",version="1"} %d\n' % (
                name, stats[name]["weir_cold_loads"]), metrics)
        self.assertEqual(server.end(), 0)


class Neighbours(unittest.TestCase):
    """Beside a server, a program that uses what is left of the same simulated GPU."""

    def programs(self):
        said = subprocess.run([WEIR, "sched", "--json", "status"], stdout=subprocess.PIPE, check=True).stdout
        return {p["class"]: p for p in json.loads(said)["programs"]}

    def test_best_effort_waits_for_requests_and_for_nobody_while_the_server_rests(self):
        directory = pathlib.Path(SCRATCH) / "neighbours"
        directory.mkdir(mode=0o700, exist_ok=True)
        os.environ["XDG_RUNTIME_DIR"] = str(directory)
        self.addCleanup(os.environ.pop, "XDG_RUNTIME_DIR")
        repository = Repository("beside")
        add(repository, "shift", engine="shift")
        server = Server(repository.path, "--sim", "--engines=" + EXAMPLES)
        self.addCleanup(server.process.terminate)
        steps = subprocess.Popen([WEIR, "run", "--quiet", "--sim", "--class=best-effort", "--", os.path.join(EXAMPLES, "..", "steps"), "-1"])
        try:
            server.wait_for(lambda: len(self.programs()) == 2)
            body = {"parameters": {"timeout": 100000000}, "inputs": [dict(tensor("X", "UINT8", 1, 8), data=list(range(8)))]}

            def ask():
                self.assertEqual(server.infer("shift", body).json["outputs"][0]["data"], [7, 0, 1, 2, 3, 4, 5, 6])
                return self.programs()["best-effort"]["waited_launches"]

            asked = self.programs()["latency"]["requests"]
            server.wait_for(ask)
            self.assertGreater(self.programs()["latency"]["requests"], asked)
            self.assertEqual(self.programs()["latency"]["slowdown"]["target"], 1.3)
            before = self.programs()["best-effort"]

            def goes_on():
                nonlocal before
                programs = self.programs()
                now = programs["best-effort"]
                rests = programs["latency"]["slowdown"]["budget_why"].startswith("no requests lately")
                if not rests or now["waited_launches"] > before["waited_launches"]:
                    before = now
                return now["predicted_device_ns"] > before["predicted_device_ns"] + 1e8

            server.wait_for(goes_on)
            self.assertEqual(server.end(), 0)
        finally:
            steps.terminate()
            steps.wait()


if __name__ == "__main__":
    unittest.main()
