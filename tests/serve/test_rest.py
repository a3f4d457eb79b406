"""REST as clients of Triton and KServe speak it: the cases of cases.py, whole and in pieces, and what takes more than one request."""
import base64
import contextlib
import gzip
import json
import mmap
import os
import resource
import shutil
import subprocess
import threading
import unittest

import cases
from server import Repository, Server, tensor


def setUpModule():
    global server, repository
    repository = Repository("rest").standard()
    names = sorted(p.name for p in repository.path.iterdir())
    server = Server(repository.path, "--model-control=explicit", *["--load-model=" + name for name in names])


def tearDownModule():
    assert server.end() == 0


def curl_speaks_http2():
    curl = shutil.which("curl")
    return curl and "HTTP2" in subprocess.run([curl, "--version"], capture_output=True, text=True).stdout


class Table(unittest.TestCase):
    def check(self, table, pieces=lambda request: 1, send=None):
        for name, request, code, holds in table:
            with self.subTest(name):
                answer = send(request) if send else server.send(request, pieces(request))
                self.assertEqual(answer.code, code, answer)
                self.assertTrue(holds(answer), answer)

    def test_control(self):
        self.check(cases.CONTROL)

    def test_answers(self):
        self.check(cases.ANSWERS)

    def test_refusals(self):
        self.check(cases.REFUSALS)

    def test_control_byte_by_byte(self):
        self.check(cases.CONTROL, len)

    def test_inference_in_small_pieces(self):
        self.check(cases.ANSWERS + cases.REFUSALS, lambda request: min(len(request), 300))

    @unittest.skipUnless(curl_speaks_http2(), "curl is not installed, or speaks no HTTP/2")
    def test_the_same_over_http2(self):
        self.check([case for case in cases.CONTROL + cases.ANSWERS + cases.REFUSALS if b"Transfer-Encoding" not in case[1]], send=server.send_http2)

    def test_what_is_no_request_ends_the_connection(self):
        for name, request, code in cases.HOSTILE:
            with self.subTest(name), server.connect() as connection:
                try:
                    connection.sendall(request)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                answer = server.receive(connection)
                self.assertIn(answer.code, code if isinstance(code, tuple) else (code,), answer)
                self.assertTrue(answer.json["error"])
                try:
                    self.assertEqual(connection.recv(1), b"")
                except ConnectionResetError:
                    pass
        self.assertEqual(server.ask("GET", "/v2/health/live").code, 200)


class Connections(unittest.TestCase):
    def test_a_connection_is_used_again(self):
        with server.connect() as connection:
            for _ in range(3):
                connection.sendall(server.bytes_of("POST", "/v2/models/echo/infer", cases.echo(cases.ROW)))
                self.assertEqual(server.receive(connection).code, 200)

    def test_requests_in_one_piece_are_answered_in_order(self):
        with server.connect() as connection:
            connection.sendall(b"".join(server.bytes_of("POST", "/v2/models/echo/infer", cases.echo(cases.ROW, id=str(i))) for i in range(5)))
            # one reader for all: each answer may bring a part of the next
            file = connection.makefile("rb")
            for i in range(5):
                self.assertIn(b" 200 ", file.readline())
                fields = dict(line.lower().split(b": ") for line in iter(file.readline, b"\r\n"))
                self.assertEqual(json.loads(file.read(int(fields[b"content-length"])))["id"], str(i))

    def test_close_and_the_old_version_end_the_connection(self):
        for request in (server.bytes_of("GET", "/v2", None, {"Connection": "close"}), b"GET /v2 HTTP/1.0\r\n\r\n"):
            with server.connect() as connection:
                connection.sendall(request)
                self.assertEqual(server.receive(connection).code, 200)
                self.assertEqual(connection.recv(1), b"")

    def test_a_body_that_waits_is_asked_for(self):
        body = json.dumps(cases.echo(cases.ROW)).encode()
        with server.connect() as connection:
            connection.sendall(server.bytes_of("POST", "/v2/models/echo/infer", None, {"Expect": "100-continue", "Content-Length": len(body)}))
            line = b""
            while not line.endswith(b"\r\n\r\n"):
                line += connection.recv(1)
            self.assertTrue(line.startswith(b"HTTP/1.1 100 "), line)
            connection.sendall(body)
            self.assertEqual(server.receive(connection).code, 200)

    def test_many_clients_at_once(self):
        failed = []

        def client(number):
            with server.connect() as connection:
                for i in range(20):
                    row = [number, i, 0, 1]
                    connection.sendall(server.bytes_of("POST", "/v2/models/echo/infer", cases.echo(row)))
                    answer = server.receive(connection)
                    if answer.code != 200 or answer.json["outputs"][0]["data"] != row:
                        failed.append(answer)
        threads = [threading.Thread(target=client, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    def test_where_no_descriptor_is_left_connections_end(self):
        own = Server(repository.path, "--model-control=explicit")
        self.addCleanup(own.end)
        most = len(os.listdir("/proc/%d/fd" % own.process.pid)) + 10
        resource.prlimit(own.process.pid, resource.RLIMIT_NOFILE, (most, most))
        connections = [own.connect() for _ in range(40)]
        with contextlib.suppress(ConnectionResetError):
            self.assertEqual(connections[-1].recv(1), b"")
        for connection in connections:
            connection.close()
        own.wait_for(lambda: own.ask("GET", "/v2/health/live").code == 200)

    def test_answers_that_nobody_reads_do_not_pile_up(self):
        requests = 4000  # each is short, and its answer is long
        with server.connect() as connection:
            before = resident()
            connection.sendall(server.bytes_of("GET", "/metrics") * requests)
            for _ in range(20):  # meanwhile the server reads the others
                self.assertEqual(server.ask("GET", "/v2/health/live").code, 200)
            self.assertLess(resident() - before, 64 << 20)
            file = connection.makefile("rb")
            for _ in range(requests):
                self.assertIn(b" 200 ", file.readline())
                fields = dict(line.lower().split(b": ") for line in iter(file.readline, b"\r\n"))
                self.assertTrue(file.read(int(fields[b"content-length"])).endswith(b"\n"))

    def test_a_large_tensor_comes_back(self):
        numbers = os.urandom(8 << 20)
        body, own = cases.with_blobs({"inputs": [cases.blob_of("X", "INT32", [2 << 20], len(numbers))], "parameters": {"binary_data_output": True}}, numbers)
        self.assertEqual(server.infer("flat", body, own).binary, numbers)


def resident():
    with open("/proc/%d/statm" % server.process.pid) as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


def counted(model, what):
    stats = server.ask("GET", "/v2/models/%s/stats" % model).json["model_stats"][0]
    return stats[what] if what in stats else stats["inference_stats"][what]["count"]


class Counts(unittest.TestCase):
    def test_statistics_count_rows_and_runs(self):
        before = [counted("two", what) for what in ("inference_count", "execution_count", "success")]
        answer = server.infer("two", {"inputs": [cases.data_of("A", "INT64", [3, 1], [1, 2, 3]), cases.data_of("B", "INT64", [3, 1], [1, 2, 3])]})
        self.assertEqual(answer.code, 200)
        after = [counted("two", what) for what in ("inference_count", "execution_count", "success")]
        self.assertEqual([b - a for a, b in zip(before, after)], [3, 1, 1])

    def test_a_run_that_fails_is_the_model_s_fault_and_counts(self):
        before = counted("fails", "fail")
        codes = [server.infer("fails", cases.X([1, 1], [i])).code for i in range(4)]
        self.assertEqual(sorted(codes), [200, 200, 500, 500])
        self.assertEqual(counted("fails", "fail") - before, 2)

    def test_a_client_that_leaves_takes_its_request_along(self):
        before = counted("slow", "execution_count")
        body = server.bytes_of("POST", "/v2/models/slow/infer", cases.X([1, 1], [1]))
        gone = [server.connect() for _ in range(4)]
        for connection in gone:
            connection.sendall(body)
        for connection in gone:
            connection.close()
        self.assertEqual(server.infer("slow", cases.X([1, 1], [2])).code, 200)
        # one may run when its client leaves; this one is served behind those that stayed in the queue
        self.assertLessEqual(counted("slow", "execution_count") - before, 3)

    def test_a_full_queue_refuses_and_says_when_to_come_back(self):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(server.infer("narrow", cases.X([1, 1], [1])))) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        refused = [a for a in answers if a.code == 429]
        self.assertEqual({a.code for a in answers}, {200, 429})
        for answer in refused:
            self.assertGreaterEqual(int(answer.headers["retry-after"]), 0)

    def test_a_deadline_that_passes_in_the_queue_sheds(self):
        first = threading.Thread(target=server.infer, args=("narrow", cases.X([1, 1], [1])))
        first.start()
        answer = server.infer("narrow", cases.X([1, 1], [1]), {"Weir-Deadline-Us": 1050000})
        first.join()
        self.assertIn(answer.code, (200, 429, 504), answer)  # whichever came first


class SharedMemory(unittest.TestCase):
    def test_tensors_travel_through_shared_memory(self):
        key = "/weir-test-%d" % os.getpid()
        with open("/dev/shm" + key, "w+b") as file:
            self.addCleanup(os.unlink, "/dev/shm" + key)
            file.truncate(4096)
            memory = mmap.mmap(file.fileno(), 4096)
        register = lambda **what: server.ask("POST", "/v2/systemsharedmemory/region/mine/register", dict({"key": key, "byte_size": 4096}, **what))
        self.assertEqual(register(offset=4000).code, 400)  # it ends behind the memory
        self.assertEqual(register(offset="0").code, 400)
        self.assertEqual(register().code, 200)
        self.assertEqual(register().code, 400)  # it is there
        status = server.ask("GET", "/v2/systemsharedmemory/status").json
        self.assertEqual(status, [{"name": "mine", "key": key, "offset": 0, "byte_size": 4096}])
        self.assertEqual(server.ask("GET", "/v2/systemsharedmemory/region/mine/status").json, status)
        memory[16:32] = cases.FLOATS
        place = lambda offset, size=16: {"shared_memory_region": "mine", "shared_memory_offset": offset, "shared_memory_byte_size": size}
        asked = lambda at, to: {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 4], "parameters": at}],
                                "outputs": [{"name": "Y", "parameters": to}]}
        answer = server.infer("echo", asked(place(16), place(64)))
        self.assertEqual(answer.code, 200, answer)
        self.assertNotIn("data", answer.json["outputs"][0])
        self.assertEqual(memory[64:80], cases.FLOATS)
        for at, to in ((place(4090), place(64)), (place(16, 12), place(64)), (place(16), place(64, 8)), (place(2**63), place(64)),
                       (place(16), dict(place(64), binary_data=True))):
            self.assertEqual(server.infer("echo", asked(at, to)).code, 400, (at, to))
        self.assertEqual(server.ask("POST", "/v2/systemsharedmemory/region/mine/unregister").code, 200)
        self.assertEqual(server.infer("echo", asked(place(16), place(64))).code, 404)

    def test_shared_memory_counts_as_a_request_s(self):
        size = 2 << 20
        small = Server(repository.path, "--model-control=explicit", "--load-model=flat", "--request-memory=1M")
        self.addCleanup(small.end)
        with open("/dev/shm/weir-test-%d" % small.port, "wb") as file:
            self.addCleanup(os.unlink, file.name)
            file.truncate(size)
            region = {"key": os.path.basename(file.name), "byte_size": size}
        self.assertEqual(small.ask("POST", "/v2/systemsharedmemory/region/mine/register", region).code, 200)
        asked = lambda size: small.infer("flat", {"inputs": [{"name": "X", "datatype": "INT32", "shape": [size // 4], "parameters":
                                                 {"shared_memory_region": "mine", "shared_memory_byte_size": size}}]})
        answer = asked(size)
        self.assertEqual(answer.code, 429, answer)
        self.assertIn("all requests together may have 1 MiB", answer.json["error"])
        self.assertEqual(asked(4096).code, 200)  # what was refused is not held

    def test_few_bytes_that_become_many_take_no_more_memory_than_all_may(self):
        small = Server(repository.path, "--model-control=explicit", "--load-model=flat", "--request-memory=1M")
        self.addCleanup(small.end)
        answer = small.infer("flat", gzip.compress(b" " * (128 << 20)), {"Content-Encoding": "gzip"})
        self.assertEqual(answer.code, 429, answer)
        with open("/proc/%d/status" % small.process.pid) as file:
            peak = [int(line.split()[1]) for line in file if line.startswith("VmHWM")][0]
        self.assertLess(peak, 64 << 10)
        self.assertEqual(small.infer("flat", {"inputs": [cases.data_of("X", "INT32", [1], [1])]}).code, 200)

    def test_no_path_leads_out_of_shared_memory(self):
        for key in ("/../etc/passwd", "../../etc/passwd", "/a/b", "", "/"):
            answer = server.ask("POST", "/v2/systemsharedmemory/region/out/register", {"key": key, "byte_size": 8})
            self.assertEqual(answer.code, 400, key)


class Models(unittest.TestCase):
    CONFIG = json.dumps({"backend": "synthetic", "max_batch_size": 4})

    def control(self, model, what, **parameters):
        return server.ask("POST", "/v2/repository/models/%s/%s" % (model, what), {"parameters": parameters} if parameters else None)

    def state(self, model):
        return {m.get("version"): m.get("state") for m in server.ask("POST", "/v2/repository/index").json if m["name"] == model}

    def test_a_model_is_unloaded_and_loaded(self):
        self.assertEqual(self.control("many", "unload", unload_dependents=False).code, 200)
        server.wait_for(lambda: server.ask("GET", "/v2/models/many/ready").code != 200)
        self.assertIn(server.infer("many", cases.echo(cases.ROW)).code, (404, 503))
        self.assertEqual(self.control("many", "load").code, 200)
        self.assertEqual(server.infer("many", cases.echo(cases.ROW)).code, 200)
        self.assertEqual(self.state("many"), {"1": "READY", "2": "READY", "30": "READY"})

    def test_a_model_comes_with_the_request(self):
        model = {"inputs": [tensor("X", "FP32", -1, 4)], "outputs": [tensor("Z", "FP32", -1, 4)]}
        files = {"file:1/model.json": base64.b64encode(json.dumps(model).encode()).decode()}
        self.assertEqual(self.control("inline", "load", **files).code, 400)  # without a configuration
        self.assertEqual(self.control("inline", "load", config=self.CONFIG, **files).code, 200)
        self.assertEqual(server.infer("inline", cases.echo(cases.ROW)).json["outputs"][0]["name"], "Z")
        self.assertEqual(server.infer("inline", cases.echo(*[cases.ROW] * 5)).code, 400)
        self.assertEqual(self.control("inline", "unload").code, 200)

    def test_a_model_whose_configuration_names_no_engine_says_which_it_has(self):
        model = {"inputs": [tensor("X", "FP32", -1, 4)], "outputs": [tensor("Y", "FP32", -1, 4)]}
        files = {"file:1/model.json": base64.b64encode(json.dumps(model).encode()).decode()}
        self.assertEqual(self.control("bare", "load", config=json.dumps({"max_batch_size": 4}), **files).code, 200)
        self.assertEqual(server.ask("GET", "/v2/models/bare").json["platform"], "synthetic")
        self.assertEqual(server.ask("GET", "/v2/models/bare/config").json["backend"], "synthetic")
        self.assertEqual(self.control("bare", "unload").code, 200)

    def test_what_can_t_be_loaded_says_why_and_leaves_the_old(self):
        for parameters, part in (({"config": "{"}, "config"), ({"config": self.CONFIG, "file:1/model.json": "%%%"}, "base64"),
                                 ({"config": self.CONFIG, "file:../../x": ""}, "..")):
            answer = self.control("echo", "load", **parameters)
            self.assertEqual(answer.code, 400, answer)
            self.assertIn(part, answer.json["error"])
        self.assertEqual(server.infer("echo", cases.echo(cases.ROW)).code, 200)
        self.assertIn(self.control("none", "load").code, (400, 404))
        self.assertIn(self.control("none", "unload").code, (200, 400, 404))

    def test_a_broken_version_changes_nothing(self):
        folder = repository.add("breaks", [tensor("X", "FP32", -1, 4)], [tensor("Y", "FP32", -1, 4)])
        self.assertEqual(self.control("breaks", "load").code, 200)
        (folder / "2").mkdir()
        (folder / "2" / "model.json").write_text("{")
        answer = self.control("breaks", "load")
        self.assertEqual(answer.code, 400, answer)
        self.assertIn("model.json", answer.json["error"])
        self.assertEqual(server.infer("breaks", cases.echo(cases.ROW)).json["model_version"], "1")


if __name__ == "__main__":
    unittest.main()
