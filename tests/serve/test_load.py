"""The load generator against a server of this file, which ends requests as their model's name says."""
import json
import os
import socket
import subprocess
import threading
import unittest

LOAD = os.path.join(os.environ["WEIR_BUILD"], "bench", "bench-serve")
CODES = {"good": 200, "shed": 504, "full": 429, "broken": 500}


class Server:
    """Answers /v2/models/NAME... over HTTP/1.1 with keep-alive, and remembers the heads of what it was asked to infer."""

    def __init__(self, most=None):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.to = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.heads, self.bodies, self.answered, self.most = [], [], 0, most
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as file:
            while self.one(connection, file):
                pass

    def one(self, connection, file):
        line = file.readline().split()
        if not line:
            return False
        fields = {}
        for field in iter(file.readline, b"\r\n"):
            name, value = field.split(b":", 1)
            fields[name.decode().lower()] = value.strip().decode()
        body = file.read(int(fields.get("content-length", 0)))
        parts = line[1].decode().split("/")
        if parts[-1] != "infer":
            self.answered = 0  # the generator looks whether the model is ready before each probe
            self.answer(connection, 200, json.dumps({"name": parts[3], "inputs": [
                {"name": "x", "datatype": "FP32", "shape": [-1, 3]},
                {"name": "y", "datatype": "INT64", "shape": [2]}]}))
            return True
        self.heads.append(fields)
        self.bodies.append(body)
        if parts[3] == "closes":
            return False
        self.answered += 1
        shed = self.most is not None and self.answered > self.most
        self.answer(connection, 504 if shed else CODES[parts[3]], "{}")
        return True

    @staticmethod
    def answer(connection, code, body):
        # in two pieces, so that an answer is put together again
        head = "HTTP/1.1 %d X\r\nContent-Length: %d\r\n" % (code, len(body))
        connection.sendall(head.encode())
        connection.sendall(("\r\n" + body).encode())


def load(server, *options, code=0):
    # a generator that is late is no fault of it on a machine that others use
    done = subprocess.run([LOAD, "--to", server.to, "--warm", "0", "--seconds", "1", "--behind", "1", *options],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


class Load(unittest.TestCase):
    def test_each_way_to_end_is_counted_for_its_model(self):
        run = load(Server(), "--arrivals", "periodic:200", "--model", "good,share=4", "--model", "shed", "--model", "full",
                   "--model", "broken", "--model", "closes")["run"]
        self.assertEqual(run["due"], 199)  # one each 5 ms, the first at 5 ms
        by_name = {model["name"]: model for model in run["models"]}
        for name, outcome in (("good", "met"), ("shed", "shed"), ("full", "refused"), ("broken", "failed"), ("closes", "failed")):
            self.assertGreater(by_name[name]["due"], 0)
            self.assertEqual(by_name[name][outcome], by_name[name]["due"], name)
        self.assertEqual(sum(model["due"] for model in run["models"]), run["due"])
        self.assertAlmostEqual(run["goodput"], run["met"] / run["due"], 5)

    def test_an_answer_behind_its_deadline_is_late(self):
        server = Server()
        run = load(server, "--arrivals", "periodic:50", "--model", "good,deadline=1,ask=9000")["run"]
        self.assertEqual((run["met"], run["late"], run["late_share"]), (0, run["due"], 1))
        self.assertEqual({head["weir-deadline-us"] for head in server.heads}, {"9000"})

    def test_a_request_has_zeros_for_all_inputs_of_the_model(self):
        server = Server()
        load(server, "--arrivals", "periodic:20", "--model", "good", "--rows", "2")
        head, body = server.heads[0], server.bodies[0]
        at = int(head["inference-header-content-length"])
        asked = json.loads(body[:at])
        self.assertEqual([i["shape"] for i in asked["inputs"]], [[2, 3], [2]])
        self.assertEqual([i["parameters"]["binary_data_size"] for i in asked["inputs"]], [24, 16])
        self.assertEqual(body[at:], bytes(40))
        self.assertNotIn("weir-deadline-us", head)

    def test_the_same_seed_is_the_same_schedule(self):
        dues = [[m["due"] for m in load(Server(), "--arrivals", "poisson:300", "--seed", seed, "--model", "good",
                                        "--model", "shed,share=2")["run"]["models"]] for seed in ("7", "7", "8")]
        self.assertEqual(dues[0], dues[1])
        self.assertNotEqual(dues[0], dues[2])

    def test_arrivals_are_read_from_a_file(self):
        path = os.path.join(os.environ["WEIR_SCRATCH"], "arrivals.txt")
        with open(path, "w") as out:
            out.write("".join("%.3f %s\n" % (.01 * i, "good" if i % 4 else "shed") for i in range(1, 41)))
        models = load(Server(), "--model", "good", "--model", "shed", "--arrivals", path, "--seconds", ".405")["run"]["models"]
        self.assertEqual([m["due"] for m in models], [30, 10])

    def test_a_closed_loop_keeps_its_number_under_way(self):
        run = load(Server(), "--arrivals", "closed:3", "--model", "good", "--seconds", ".2")["run"]
        self.assertEqual(run["connections"], 3)
        self.assertEqual(run["met"], run["due"])
        self.assertLess(run["max_us"], 60e6)

    def test_the_highest_rate_in_time_is_found(self):
        found = load(Server(most=60), "--arrivals", "periodic:60", "--model", "good", "--find-rate", "100,50", "--precision", ".05",
                     "--seconds", ".3")
        (all_of_it, half) = found["rates"]
        self.assertTrue(193 < all_of_it["rate"] <= 204, all_of_it)
        self.assertTrue(384 < half["rate"] <= 404, half)
        self.assertEqual(len({p["seed"] for p in found["probes"]}), len(found["probes"]))

    def test_a_run_whose_generator_fell_behind_is_void(self):
        # one connection, and an answer that comes only after many more were due
        server = Server()
        gate = threading.Event()
        answer = server.answer
        server.answer = lambda *what: (b"inputs" in what[2].encode() or gate.wait(.2), answer(*what))
        done = subprocess.run([LOAD, "--to", server.to, "--warm", "0", "--seconds", ".2", "--connections", "1", "--model", "good",
                               "--arrivals", "periodic:100"], capture_output=True, text=True, timeout=300)
        gate.set()
        self.assertEqual(done.returncode, 1)
        run = json.loads(done.stdout)["run"]
        self.assertTrue(run["void"])
        self.assertGreater(run["behind"], 0)

    def test_what_is_wrong_with_the_command_is_said(self):
        for options, said in ((("--model", "good", "--arrivals", "poisson:x"), "--arrivals: x"), (("--arrivals", "closed:1"), "wanted"),
                              (("--model", "good,speed=1", "--arrivals", "closed:1"), "NAME,share=N"),
                              (("--model", "good", "--arrivals", "closed:1", "--find-rate", "99"), "open loop")):
            self.assertIn(said, load(Server(), *options, code=2))


if __name__ == "__main__":
    unittest.main()
