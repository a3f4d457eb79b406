"""The log of requests: a line each, written by a thread that no slow file makes others wait for."""
import http.client
import json
import os
import shutil
import signal
import threading
import unittest

import cases
from server import PATIENCE, Repository, Server, values

repository = Repository("log").quick()


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


class Log(unittest.TestCase):
    TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    def serve(self, path, *options):
        server = Server(repository.path, "--log=" + str(path), *options)
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

    def test_a_file_that_hangs_delays_nobody(self):
        path = repository.path.parent / "pipe"
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # it never reads
        self.addCleanup(os.close, reader)
        server = self.serve(path)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        self.addCleanup(connection.close)
        lost = 0
        for _ in range(20):
            for _ in range(500):
                connection.request("GET", "/v2/models/" + 200 * "m")
                answer = connection.getresponse()
                answer.read()
                self.assertEqual(answer.status, 404)
            lost = values(server)["weir_serve_log_lost_total"]
            if lost:
                break
        self.assertGreater(lost, 0)
        self.assertEqual(server.infer("echo", cases.echo(cases.ROW)).code, 200)
        self.assertEqual(server.end(), 0)

    def test_what_waits_is_written_at_the_end(self):
        path = repository.path.parent / "slow"
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        server = self.serve(path)
        for _ in range(200):
            self.assertEqual(server.ask("GET", "/v2/models/" + 200 * "m").code, 404)
        os.set_blocking(reader, True)
        with os.fdopen(reader) as file:
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(sum(json.loads(line)["status"] == 404 for line in file), 200)
        self.assertEqual(server.end(), 0)

    def test_a_removed_folder_stops_nothing(self):
        folder = repository.path.parent / "logs"
        folder.mkdir(exist_ok=True)
        server = self.serve(folder / "requests")
        shutil.rmtree(folder)
        self.assertEqual(server.infer("echo", cases.echo(cases.ROW)).code, 200)
        self.assertEqual(server.ask("GET", "/v2/health/ready").code, 200)
        server.wait_for(lambda: values(server)["weir_serve_log_lost_total"] >= 2)

    def test_each_of_many_requests_is_a_line_or_counted(self):
        path = repository.path.parent / "busy"
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        server = self.serve(path, "--loops=2")
        os.set_blocking(reader, True)
        requests, clients = 300, 8
        request = server.bytes_of("GET", "/v2/models/" + 200 * "m")

        def client():
            with server.connect() as connection:
                for _ in range(requests):
                    connection.sendall(request)
                    server.receive(connection)
        threads = [threading.Thread(target=client) for _ in range(clients)]
        with os.fdopen(reader) as file:
            for thread in threads:
                thread.start()
            written = [json.loads(next(file))["status"] for _ in range(100)]
            for thread in threads:
                thread.join()
            lost = values(server)["weir_serve_log_lost_total"]
            server.process.send_signal(signal.SIGTERM)
            written += [json.loads(line)["status"] for line in file]
        self.assertEqual(sum(status == 404 for status in written) + lost, requests * clients)
        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    unittest.main()
