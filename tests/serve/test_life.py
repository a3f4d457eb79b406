"""The life of a server: drained and reloaded under load, killed and started again, and what it does not let clients do."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import threading
import time
import unittest

import cases
import http2
from server import PATIENCE, SCRATCH, Repository, Server, tensor

ONE = [tensor("X", "FP32", -1, 4)], [tensor("Y", "FP32", -1, 4)]


class Load:
    """Clients that ask until they are told to stop, each on a connection that it keeps while the server does."""

    def __init__(self, server, clients=6):
        self.server, self.failed, self.versions = server, [], {}
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.client) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def client(self):
        request = self.server.bytes_of("POST", "/v2/models/m/infer", cases.echo(cases.ROW))
        while not self.stop.is_set():
            try:
                connection = self.server.connect()
            except OSError:
                return  # it listens no longer: the request was never sent
            with connection:
                while not self.stop.is_set():
                    try:
                        connection.sendall(request)
                        answer = self.server.receive(connection)
                    except OSError as error:
                        self.failed.append(repr(error))
                        return
                    if answer.code != 200:
                        self.failed.append(answer)
                        return
                    version = answer.json["model_version"]
                    self.versions[version] = self.versions.get(version, 0) + 1
                    if answer.headers.get("connection") == "close":
                        break
            if not self.ready():
                return  # as a load balancer does

    def ready(self):
        try:
            return self.server.ask("GET", "/v2/health/ready").code == 200
        except OSError:
            return False

    def answered(self):
        return sum(self.versions.values())

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        return self.failed


class Life(unittest.TestCase):
    def start(self, name, *options, **model):
        repository = Repository(name)
        repository.add("m", *ONE, **model)
        server = Server(repository.path, *options)
        self.addCleanup(server.end, signal.SIGKILL)
        return repository, server

    def test_a_drain_fails_no_request(self):
        _, server = self.start("drain", "--drain-delay=300ms")
        load = Load(server)
        server.wait_for(lambda: load.answered() > 50)
        server.process.send_signal(signal.SIGTERM)
        status = server.process.wait(PATIENCE)
        self.assertEqual(load.end(), [])
        self.assertEqual(status, 0, server.said())

    def test_it_is_not_ready_while_it_drains_and_a_second_signal_ends_it(self):
        _, server = self.start("twice", "--drain-delay=3600s")
        server.process.send_signal(signal.SIGTERM)
        server.wait_for(lambda: server.ask("GET", "/v2/health/ready").code == 400)
        self.assertEqual(server.ask("GET", "/v2/health/live").code, 200)
        self.assertEqual(server.infer("m", cases.echo(cases.ROW)).code, 200)
        server.end(signal.SIGTERM)

    def test_a_new_version_is_taken_over_without_a_failed_request(self):
        repository, server = self.start("reload", "--poll=50ms")
        load = Load(server)
        for version in ("2", "3"):
            # made elsewhere and moved in, as a deployment does
            made = repository.path.parent / "reload.new"
            shutil.rmtree(made, ignore_errors=True)
            shutil.copytree(repository.path / "m" / "1", made)
            os.rename(made, repository.path / "m" / version)
            server.wait_for(lambda: load.versions.get(version, 0) > 20)
        self.assertEqual(load.end(), [])
        self.assertEqual(server.infer("m/versions/1", cases.echo(cases.ROW)).code, 404)
        self.assertEqual(server.end(), 0)

    def test_load_requests_under_load_fail_none(self):
        _, server = self.start("explicit", "--model-control=explicit", "--load-model=m")
        load = Load(server, clients=64)
        for _ in range(10):
            self.assertEqual(server.ask("POST", "/v2/repository/models/m/load").code, 200)
        self.assertEqual(load.end(), [])
        self.assertEqual(server.end(), 0)

    def test_a_short_batch_on_a_quiet_server_wakes_no_other_thread(self):
        _, server = self.start("quiet", how="spin")
        requests, before = 200, self.sleeps(server)
        with server.connect() as connection:
            for _ in range(requests):
                connection.sendall(server.bytes_of("POST", "/v2/models/m/infer", cases.echo(cases.ROW)))
                self.assertEqual(server.receive(connection).code, 200)
        after = self.sleeps(server)
        loop, other, *_ = sorted((after[thread] - before[thread] for thread in before), reverse=True)
        self.assertLess(other, requests / 2, loop)
        self.assertEqual(server.end(), 0)

    @staticmethod
    def sleeps(server):
        """By thread, how often it went to sleep."""
        threads = pathlib.Path("/proc/%d/task" % server.process.pid)
        return {thread.name: int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", (thread / "status").read_text())[1])
                for thread in threads.iterdir()}

    def test_a_broken_version_changes_nothing_and_is_told(self):
        repository, server = self.start("broken", "--poll=50ms")
        (repository.path / "m" / "2").mkdir()
        (repository.path / "m" / "2" / "model.json").write_text("{")
        server.wait_for(lambda: "model.json" in server.said())
        self.assertEqual(server.ask("POST", "/v2/repository/models/m/load").code, 503)  # by the thread that tells, after it has
        self.assertEqual(server.said().count("is not loaded"), 1, server.said())
        self.assertEqual(len([line for line in server.said().splitlines() if "model.json" in line]), 1, server.said())
        self.assertEqual(server.infer("m", cases.echo(cases.ROW)).json["model_version"], "1")
        self.assertEqual(server.end(), 0)

    def test_what_does_not_load_at_the_start_is_told_once(self):
        repository = Repository("start")
        (repository.add("b", *ONE) / "1" / "model.json").write_text("{")
        server = Server(repository.path, "--model-control=explicit", "--load-model=b", "--load-model=none")
        said = server.said()
        self.assertEqual([said.count(part) for part in ("model.json", "'none'")], [1, 1], said)
        self.assertEqual(server.end(), 0)
        server = Server(repository.path, "--strict", wait=False)
        self.assertEqual(server.process.wait(PATIENCE), 2)
        self.assertEqual([server.said().count(part) for part in ("model.json", "--strict")], [1, 1], server.said())
        server.end()

    def test_samples_of_the_configuration_run_before_a_model_is_ready(self):
        config = """model_warmup { name: "s" batch_size: 2
            inputs { key: "X" value { data_type: TYPE_FP32 dims: 4 input_data_file: "x" } } }"""
        repository = Repository("warm")
        repository.add("warm", [tensor("X", "FP32", -1, 4)], [tensor("Y", "FP32", -1, 4)], config)
        folder = os.path.join(repository.path, "warm")
        server = Server(repository.path, "--model-control=explicit")
        self.assertIn("warmup/x", server.ask("POST", "/v2/repository/models/warm/load").json["error"])
        answer = server.ask("POST", "/v2/repository/models/warm/load", b'{"parameters":{"confg":"{}"}}')
        self.assertEqual((answer.code, "'confg'" in answer.json["error"]), (400, True))
        os.mkdir(os.path.join(folder, "warmup"))
        for size, code in ((31, 400), (33, 400), (32, 200)):
            with open(os.path.join(folder, "warmup", "x"), "wb") as f:
                f.write(bytes(size))
            self.assertEqual(server.ask("POST", "/v2/repository/models/warm/load").code, code, size)
        server.end()

    def test_a_hangup_reads_the_repository_again(self):
        repository, server = self.start("hangup", "--model-control=none")
        repository.add("n", *ONE)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for(lambda: server.infer("n", cases.echo(cases.ROW)).code == 200)
        self.assertEqual(server.end(), 0)

    def test_after_a_kill_the_next_start_stumbles_over_nothing(self):
        repository, server = self.start("killed")
        load = Load(server, clients=2)
        server.wait_for(lambda: load.answered() > 10)
        server.end(signal.SIGKILL)
        load.end()
        again = Server(repository.path)
        self.assertEqual(again.infer("m", cases.echo(cases.ROW)).code, 200)
        self.assertEqual(again.end(), 0)

    def test_a_socket_in_the_file_system_is_left_by_a_kill_and_taken_again(self):
        repository = Repository("socket")
        repository.add("m", *ONE)
        path = os.path.join(SCRATCH, "serve.sock")
        for how in (signal.SIGKILL, signal.SIGTERM):
            server = Server(repository.path, listen="unix:" + path)
            self.assertEqual(server.infer("m", cases.echo(cases.ROW)).code, 200)
            server.end(how)
        self.assertFalse(os.path.exists(path))

    def test_a_slow_client_is_cut_and_holds_nobody_up(self):
        _, server = self.start("loris")
        head = server.bytes_of("POST", "/v2/models/m/infer", cases.echo(cases.ROW))
        slow = [server.connect() for _ in range(3)]
        for connection, part in zip(slow, (b"", head[:20], head[:-5])):
            connection.sendall(part)
        stream = http2.Http2(server)
        stream.head(1, "/inference.GRPCInferenceService/ModelStreamInfer", ("content-type", "application/grpc"), ("te", "trailers"))
        stream.data(1, struct.pack(">BI", 0, 100) + b"part")
        self.assertEqual(server.infer("m", cases.echo(cases.ROW)).code, 200)
        for connection in slow[1:]:
            with connection:
                rest = b""
                try:
                    while (more := connection.recv(4096)):
                        rest += more
                except ConnectionResetError:
                    pass
                self.assertTrue(rest == b"" or b" 408 " in rest, rest)
        slow[0].close()
        self.assertIsNotNone(stream.until(http2.RST_STREAM, 1))
        stream.__exit__()
        self.assertEqual(server.end(), 0)

    def test_a_connection_without_requests_is_ended(self):
        repository, server = self.start("idle", "--idle-time=700ms")
        repository.add("slow", *ONE, batch=1, us=1200000)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for(lambda: server.ask("GET", "/v2/models/slow/ready").code == 200)
        # what waits for an answer is not idle, though it lasts longer than several looks at the connections
        body, ask = cases.echo(cases.ROW), "/v2/models/slow/infer"
        with server.connect() as first, server.connect() as silent, http2.Http2(server) as second, http2.Http2(server) as quiet:
            first.sendall(server.bytes_of("POST", ask, body))
            second.head(1, ask)
            second.data(1, json.dumps(body).encode(), end=True)
            self.assertTrue(second.answer(1)[0])
            self.assertEqual(server.receive(first).code, 200)
            for connection in (second, quiet):
                self.assertEqual(connection.until(http2.GOAWAY, 0)[3][4:8], bytes(4), "it ends without an error")
                self.assertIsNone(connection.receive())
            self.assertEqual((first.recv(1), silent.recv(1)), (b"", b""))
        self.assertEqual(server.end(), 0)

    def test_trailers_are_no_headers(self):
        _, server = self.start("trailers")
        with http2.Http2(server) as connection:
            for stream, name, value in ((1, "weir-deadline-us", "1"), (3, "content-encoding", "gzip"), (5, "content-type", "application/grpc"),
                                        (7, "inference-header-content-length", "1")):
                connection.head(stream, "/v2/models/m/infer")
                connection.data(stream, json.dumps(cases.echo(cases.ROW)).encode())
                connection.trailers(stream, (name, value))
                ok, body = connection.answer(stream)
                self.assertTrue(ok and "outputs" in json.loads(body), (name, body))
        self.assertEqual(server.end(), 0)

    def test_it_ends_at_once_while_batches_run(self):
        repository, server = self.start("busy", "--drain-delay=3600s")
        repository.add("slow", *ONE, batch=1, us=300000)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for(lambda: server.ask("GET", "/v2/models/slow/ready").code == 200)
        waiting = [server.connect() for _ in range(3)]
        for connection in waiting:
            connection.sendall(server.bytes_of("POST", "/v2/models/slow/infer", cases.echo(cases.ROW)))
        # the answer of a fourth says that the device has taken the others
        self.assertEqual(server.infer("slow", cases.echo(cases.ROW)).code, 200)
        for connection in waiting:
            connection.sendall(server.bytes_of("POST", "/v2/models/slow/infer", cases.echo(cases.ROW)))
        server.process.send_signal(signal.SIGTERM)
        server.wait_for(lambda: server.ask("GET", "/v2/health/ready").code == 400)
        self.assertEqual(server.end(), 0)
        for connection in waiting:
            connection.close()

    def test_a_thread_that_does_not_start_ends_the_start(self):
        if os.environ.get("WEIR_SANITIZE") == "thread":
            self.skipTest("ThreadSanitizer takes no such stack")
        whole = 1 << 47  # as a thread's stack it is all the addresses that there are
        repository = Repository("threads")
        server = Server(repository.path, wait=False, limits={resource.RLIMIT_STACK: whole})
        self.addCleanup(server.end)
        self.assertEqual(server.process.wait(PATIENCE), 3, server.said())
        self.assertIn("thread does not start", server.said())

    def test_a_word_is_asked_of_clients(self):
        word = os.path.join(SCRATCH, "word")
        with open(word, "w") as out:
            out.write("sesame\n")
        os.chmod(word, 0o600)
        repository = Repository("token")
        repository.add("m", *ONE)
        server = Server(repository.path, "--token=" + word, wait=False)
        asked = lambda said: server.infer("m", cases.echo(cases.ROW), {"Authorization": said} if said else {}).code
        server.wait_for(lambda: asked("Bearer sesame") == 200)
        for said in (None, "Bearer sesam", "Bearer sesame2", "Basic sesame"):
            self.assertEqual(asked(said), 401, said)
        self.assertEqual(server.end(), 0)

    def test_a_token_has_a_rate(self):
        word = os.path.join(SCRATCH, "rates.txt")
        with open(word, "w") as out:
            out.write("quick\nslow requests=1\nsmall rows=1\n")
        repository = Repository("rates")
        repository.add("m", *ONE, batch=1000)
        server = Server(repository.path, "--token=" + word, wait=False)
        ask = lambda who, rows=1: server.infer("m", cases.echo(*[cases.ROW] * rows), {"Authorization": "Bearer " + who})
        server.wait_for(lambda: ask("quick").code == 200)
        began = time.monotonic()
        slow = [ask("slow") for _ in range(30)]
        # one at once, and then one a second, however long it takes
        self.assertLessEqual(sum(answer.code == 200 for answer in slow), 2 + time.monotonic() - began)
        refused = [answer for answer in slow if answer.code != 200]
        self.assertEqual({(answer.code, answer.headers["retry-after"]) for answer in refused}, {(429, "1")})
        self.assertEqual((ask("small", 1000).code, ask("small").code), (200, 429))
        self.assertEqual({ask("quick").code for _ in range(30)}, {200})
        body = [b"weir_serve_rate_refused_total %d" % (len(refused) + 1)]
        said = server.ask("GET", "/metrics", headers={"Authorization": "Bearer slow"}).body.splitlines()
        self.assertEqual([line for line in said if line.startswith(b"weir_serve_rate_refused_total")], body)
        for who, ok in (("quick", True), ("small", False)):
            with http2.Http2(server) as connection:
                connection.head(1, "/v2/models/m/infer", ("authorization", "Bearer " + who))
                connection.data(1, json.dumps(cases.echo(cases.ROW)).encode(), end=True)
                self.assertEqual(connection.answer(1)[0], ok)
        self.assertEqual(server.end(), 0)

    def test_a_server_that_is_open_takes_settings_with_a_word_only(self):
        _, server = self.start("open", "--open")
        settings = "/v2/weir/settings"
        self.assertEqual(server.ask("GET", settings).code, 200)
        self.assertEqual(server.ask("POST", settings, b'{"policy":"edf"}').code, 401)
        self.assertEqual(server.ask("GET", settings).json["policy"], "slack")
        self.assertEqual(server.end(), 0)

    def test_another_address_needs_a_word(self):
        repository = Repository("open")
        repository.add("m", *ONE)
        server = Server(repository.path, listen="0.0.0.0:0", wait=False)
        self.assertNotEqual(server.process.wait(PATIENCE), 0)
        self.assertIn("--token", server.said())
        for wrong in ("127.0.0.1:65536", "127.0.0.1:http", "127.0.0.1:", ":8000", "8000"):
            server = Server(repository.path, listen=wrong, wait=False)
            self.assertNotEqual(server.process.wait(PATIENCE), 0)
            self.assertIn("give ADDRESS:PORT", server.said())


if __name__ == "__main__":
    unittest.main()
