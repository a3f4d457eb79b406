"""The HTTP layers of public clients send this, byte by byte: of tritonclient (geventhttpclient and
aiohttp), perf_analyzer and curl (libcurl), KServe (httpx), load balancers and old programs.  gRPC
clients are in test_grpc.py; here are the frames they send."""
import base64
import gzip
import json
import struct
import unittest
import urllib.parse
import zlib

import cases
import http2
from server import Repository, Server, tensor

BYTES = struct.pack("<16i", *range(16))
NAME = "a model, 100% \u00e9"


def setUpModule():
    global server
    repository = Repository("clients").quick()
    two = [tensor("INPUT%d" % i, "INT32", -1, 16) for i in range(2)], [tensor("OUTPUT%d" % i, "INT32", -1, 16) for i in range(2)]
    repository.add("simple", *two)
    server = Server(repository.path, "--model-control=explicit", "--id=triton", *["--load-model=" + name for name in ("echo", "flat", "simple")])


def tearDownModule():
    assert server.end() == 0


def asked(binary=True, **more):
    """A request as tritonclient.http makes it: body and the length of its JSON."""
    inputs = [{"name": "INPUT%d" % i, "shape": [1, 16], "datatype": "INT32",
               **({"parameters": {"binary_data_size": 64}} if binary else {"data": list(range(16))})} for i in range(2)]
    text = json.dumps(dict({"inputs": inputs}, **more), separators=(",", ":")).encode()
    return text + BYTES * 2 * binary, len(text)


class Client(unittest.TestCase):
    """One connection, whose headers are those that the client sends with each request."""
    headers = ()

    def setUp(self):
        self.connection = server.connect()
        self.addCleanup(self.connection.close)

    def ask(self, verb, path, body=None, *headers, code=200):
        lines = ["%s %s HTTP/1.1" % (verb, path), "Host: localhost:%d" % server.port, *self.headers, *headers]
        if body is not None:
            lines.append("Content-Length: %d" % len(body))
        self.connection.sendall("\r\n".join([*lines, "", ""]).encode())  # the head and the body are two writes
        self.connection.sendall(body or b"")
        answer = server.receive(self.connection)
        self.assertEqual(answer.code, code, answer)
        return answer

    def infer(self, body, length, *headers):
        own = ["Inference-Header-Content-Length: %d" % length] if length else []
        answer = self.ask("POST", "/v2/models/simple/infer", body, *own, *headers)
        # the clients find an output by its place among those that have a size
        at, found = 0, {}
        for output in answer.json["outputs"]:
            size = output.get("parameters", {}).get("binary_data_size")
            found[output["name"]] = answer.binary[at:at + size] if size is not None else output["data"]
            at += size or 0
        return found


class Gevent(Client):
    """tritonclient.http."""
    headers = ("User-Agent: python/gevent-http-client-2.3.1",)

    def test_health_and_metadata(self):
        self.ask("GET", "/v2/health/live?test_1=1&test_2=2")
        self.ask("GET", "/v2/health/ready")
        self.ask("GET", "/v2/models/simple/ready")
        self.assertEqual(self.ask("GET", "/v2").json["name"], "triton")
        self.assertEqual(self.ask("GET", "/v2/models/simple?test_1=1&test_2=2").json["name"], "simple")
        self.assertIn("Request for unknown model", self.ask("GET", "/v2/models/wrong_model_name", code=404).json["error"])

    def test_models_are_controlled(self):
        load = lambda **parameters: json.dumps({"parameters": parameters} if parameters else {}).encode()
        path = "/v2/repository/models/%s/%s"
        index = lambda body: {m["name"] for m in self.ask("POST", "/v2/repository/index", body).json}
        self.assertLessEqual({"echo", "flat", "simple", "two"}, index(b""))  # also what is not loaded
        self.assertNotIn("two", index(b'{"ready":true}'))
        self.ask("POST", path % ("simple", "load"), load())
        wrong = self.ask("POST", path % ("simple", "load"), load(config='"parameters": {"config": {{"max_batch_size": "16"}}}'), code=400)
        self.assertIn("failed to load", wrong.json["error"])
        self.ask("POST", path % ("simple", "load"), load(config='{"max_batch_size":"16"}'))
        self.assertEqual(self.ask("GET", "/v2/models/simple/config").json["max_batch_size"], 16)
        self.ask("POST", path % ("simple", "unload"), load(unload_dependents=False))
        self.ask("GET", "/v2/models/simple/ready", code=400)
        self.assertIn("failed to load", self.ask("POST", path % ("wrong_model_name", "load"), load(), code=404).json["error"])
        self.ask("POST", path % ("simple", "load"), load())

    def test_names_are_quoted(self):
        model = {"inputs": [tensor("X", "FP32", -1, 4)], "outputs": [tensor("Y", "FP32", -1, 4)]}
        parameters = {"config": json.dumps({"backend": "synthetic"}), "file:1/model.json": base64.b64encode(json.dumps(model).encode()).decode()}
        for name, code in (("dots.and-dashes_1", 200), (NAME, 400)):
            quoted = urllib.parse.quote(name)
            self.ask("POST", "/v2/repository/models/%s/load" % quoted, json.dumps({"parameters": parameters}).encode(), code=code)
            self.ask("GET", "/v2/models/%s/versions/1/ready" % quoted, code=200 if code == 200 else 404)
        self.assertIn(NAME, self.ask("GET", "/v2/models/" + urllib.parse.quote(NAME), code=404).json["error"])

    def test_inference(self):
        both = {"OUTPUT0": BYTES, "OUTPUT1": BYTES}
        self.assertEqual(self.infer(*asked(parameters={"binary_data_output": True})), both)
        names = [{"name": "OUTPUT1", "parameters": {"binary_data": False}}, {"name": "OUTPUT0", "parameters": {"binary_data": True}}]
        self.assertEqual(self.infer(*asked(outputs=names)), {"OUTPUT1": list(range(16)), "OUTPUT0": BYTES})
        body, _ = asked(binary=False, id="7", parameters={"priority": 1, "timeout": 60000000, "binary_data_output": True, "mine": True})
        self.assertEqual(self.infer(body, None), both)

    def test_compression(self):
        body, length = asked(parameters={"binary_data_output": True})
        for encoding, pack in (("gzip", gzip.compress), ("deflate", zlib.compress)):
            found = self.infer(pack(body), length, "Content-Encoding: " + encoding, "Accept-Encoding: " + encoding)
            self.assertEqual(found, {"OUTPUT0": BYTES, "OUTPUT1": BYTES})

    def test_settings(self):
        for path in ("/v2/trace/setting", "/v2/models/simple/trace/setting"):
            change = {"trace_level": ["TIMESTAMPS"], "trace_rate": "1", "trace_count": "-1", "log_frequency": "0"}
            self.assertEqual(self.ask("POST", path, json.dumps(change).encode()).json, dict(change, trace_file="", trace_mode="triton"))
            clear = {key: None for key in change}
            self.assertEqual(self.ask("POST", path, json.dumps(clear).encode()).json["trace_level"], ["OFF"])
            self.ask("POST", path, b'{"trace_file":"here"}', code=501)
        change = {"log_info": False, "log_warning": True, "log_error": True, "log_verbose_level": 1, "log_format": "ISO8601"}
        self.assertEqual(self.ask("POST", "/v2/logging", json.dumps(change).encode()).json, dict(change, log_file=""))
        self.ask("POST", "/v2/logging", b'{"log_file":"here"}', code=501)

    def test_statistics_have_what_perf_analyzer_reads(self):
        self.infer(*asked())
        for path, count in (("/v2/models/simple/stats", 1), ("/v2/models/simple/versions/1/stats", 1), ("/v2/models/stats", 3)):
            rows = self.ask("GET", path).json["model_stats"]
            self.assertGreaterEqual(len(rows), count)
            for row in rows:
                for what in ("success", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss"):
                    self.assertEqual(set(row["inference_stats"][what]), {"count", "ns"})


class Aiohttp(Gevent):
    """tritonclient.http.aio."""
    headers = ("Accept: */*", "Accept-Encoding: gzip, deflate, br", "User-Agent: Python/3.12 aiohttp/3.9.5",
               "Content-Type: application/octet-stream")


class Libcurl(Gevent):
    """perf_analyzer and the C++ client."""
    headers = ("User-Agent: libcurl-agent/1.0", "Accept: */*", "Content-Type: application/octet-stream")


class Httpx(Client):
    """KServe's InferenceRESTClient, version 2 of the protocol."""
    headers = ("Accept: */*", "Accept-Encoding: gzip, deflate", "Connection: keep-alive", "User-Agent: python-httpx/0.27.2")

    def test_health(self):
        self.assertIs(self.ask("GET", "/v2/health/live").json["live"], True)
        self.assertIs(self.ask("GET", "/v2/health/ready").json["ready"], True)
        self.assertIs(self.ask("GET", "/v2/models/simple/ready").json["ready"], True)
        # it compares the type exactly before it looks for the error
        self.assertEqual(self.ask("GET", "/v2/models/none/ready", code=404).headers["content-type"], "application/json")

    def test_inference(self):
        text = {"model_name": "simple", "outputs": [{"name": "OUTPUT0"}, {"name": "OUTPUT1", "parameters": {"binary_data": True}}]}
        body, length = asked(id="1f0e", **text)
        own = "inference-header-content-length: %d" % length
        answer = self.ask("POST", "/v2/models/simple/infer", body, own, "content-type: application/octet-stream")
        self.assertEqual((answer.json["id"], answer.json["outputs"][0]["data"], answer.binary), ("1f0e", list(range(16)), BYTES))
        body, _ = asked(binary=False, id="1f0e", model_name="simple")
        self.assertEqual(self.ask("POST", "/v2/models/simple/infer", body).json["outputs"][1]["data"], list(range(16)))


class Others(unittest.TestCase):
    def test_a_head_has_no_body(self):
        with server.connect() as connection:
            file = connection.makefile("rb")
            for path, code in (("/v2/health/ready", b"200"), ("/v2/nothing", b"404"), ("/v2/models/echo/infer", b"405")):
                # what follows on the connection is the next answer
                connection.sendall(b"".join(b"%s %s HTTP/1.1\r\nHost: a\r\n\r\n" % (verb, where.encode()) for verb, where in ((b"HEAD", path), (b"GET", "/v2"))))
                self.assertEqual(file.readline().split()[1], code)
                fields = dict(line.lower().split(b": ", 1) for line in iter(file.readline, b"\r\n"))
                self.assertEqual(int(fields[b"content-length"]), len(server.ask("GET", path).body))
                self.assertEqual(file.readline(), b"HTTP/1.1 200 OK\r\n")
                fields = dict(line.lower().split(b": ", 1) for line in iter(file.readline, b"\r\n"))
                self.assertIn(b"triton", file.read(int(fields[b"content-length"])))
        with http2.Http2(server) as connection:
            connection.head(1, "/v2/health/ready", verb="HEAD", end=True)
            self.assertTrue(connection.until(http2.HEADERS, 1)[1] & http2.END_STREAM)

    def test_old_programs_are_told_that_the_connection_stays(self):
        with server.connect() as connection:
            for _ in range(2):
                connection.sendall(b"GET /v2/health/live HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
                self.assertEqual(server.receive(connection).headers["connection"], "keep-alive")
        self.assertNotIn("connection", server.ask("GET", "/v2").headers)

    def test_an_offer_of_http2_is_not_taken(self):
        answer = server.ask("GET", "/v2/health/live", headers={"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABk"})
        self.assertEqual(answer.code, 200)


class Frames(unittest.TestCase):
    """gRPC's libraries send this and nghttp2's do not."""
    # no push, window, frame and list sizes, and two numbers of gRPC's own
    SETTINGS = ((2, 0), (3, 0), (4, 4194304), (5, 4194304), (6, 16384), (0xfe03, 1), (0xfe04, 2))
    PATH = "/inference.GRPCInferenceService/ServerLive"
    LIVE = b"\0\0\0\0\2\x08\1"

    def head(self, kept):
        """HPACK: fields that the table keeps from then on, or has."""
        fields = ((":method", "POST"), (":scheme", "http"), (":path", self.PATH), (":authority", "localhost"), ("te", "trailers"), ("content-type", "application/grpc"),
                  ("user-agent", "grpc-python/1.62.1 grpc-c/39.0.0 (linux; chttp2)"), ("grpc-accept-encoding", "identity, deflate, gzip"))
        if kept:
            return bytes(0x80 | 62 + len(fields) - 1 - i for i in range(len(fields)))
        return b"".join(b"\x40" + bytes([len(n)]) + n.encode() + bytes([len(v)]) + v.encode() for n, v in fields)

    def answer(self, connection, stream):
        """The bytes of the message, when its trailers have come."""
        body = b""
        while True:
            kind, flags, of, part = connection.receive()
            if of == stream and kind == http2.DATA:
                body += part
            if of == stream and kind == http2.HEADERS and flags & http2.END_STREAM:
                return body

    def test_heads_in_pieces_priorities_and_padding(self):
        with http2.Http2(server, self.SETTINGS) as connection:
            send = lambda *what: connection.socket.sendall(http2.frame(*what))
            send(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 4 << 20))
            for stream, kept in ((1, False), (3, True), (5, True)):
                block = self.head(kept)
                send(http2.HEADERS, http2.HAS_PRIORITY | http2.PADDED, stream, b"\3" + struct.pack(">IB", 0, 15) + block[:4] + b"\0" * 3)
                send(http2.CONTINUATION, 0, stream, block[4:5])
                send(http2.CONTINUATION, http2.END_HEADERS, stream, block[5:])
                send(http2.PRIORITY, 0, stream, struct.pack(">IB", 0, 200))
                send(0xbe, 0, stream, b"a kind that nobody knows")
                for data, flags in ((b"\0\0\0", 0), (b"\0\0", http2.END_STREAM)):  # a message of no bytes, in two parts
                    send(http2.DATA, http2.PADDED | flags, stream, b"\4" + data + b"\0" * 4)
                self.assertEqual(self.answer(connection, stream), self.LIVE)

    def test_pings_are_answered_with_and_without_a_request(self):
        with http2.Http2(server, self.SETTINGS) as connection:
            for i in range(20):  # as fast as no keepalive is
                connection.socket.sendall(http2.frame(http2.PING, 0, 0, struct.pack(">Q", i)))
            for i in range(20):
                self.assertEqual(connection.until(http2.PING, 0)[3], struct.pack(">Q", i))
            connection.socket.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, self.head(False)) + http2.frame(http2.PING, 0, 0, b"8 bytes.") +
                                      http2.frame(http2.DATA, http2.END_STREAM, 1, b"\0" * 5))
            self.assertEqual(self.answer(connection, 1), self.LIVE)

    def test_a_client_opens_its_window_by_and_by(self):
        with http2.Http2(server, ((4, 0),)) as connection:
            connection.socket.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, self.head(False)) + http2.frame(http2.DATA, http2.END_STREAM, 1, b"\0" * 5))
            connection.until(http2.HEADERS, 1)
            body = b""
            for _ in self.LIVE:
                connection.socket.sendall(http2.frame(http2.WINDOW_UPDATE, 0, 1, struct.pack(">I", 1)))
                body += connection.until(http2.DATA, 1)[3]
            self.assertEqual(body, self.LIVE)
            self.assertTrue(connection.until(http2.HEADERS, 1)[1] & http2.END_STREAM)

    def test_a_client_that_says_goodbye_has_its_answers(self):
        with http2.Http2(server) as connection:
            connection.socket.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, self.head(False)) + http2.frame(http2.GOAWAY, 0, 0, struct.pack(">II", 0, 0)) +
                                      http2.frame(http2.DATA, http2.END_STREAM, 1, b"\0" * 5))
            self.assertEqual(self.answer(connection, 1), self.LIVE)

    def test_a_stream_that_is_reset_leaves_the_others(self):
        with http2.Http2(server) as connection:
            for stream in range(1, 41, 2):
                connection.socket.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, self.head(stream > 1)) + http2.frame(http2.DATA, 0, stream, b"\0\0") +
                                          http2.frame(http2.RST_STREAM, 0, stream, struct.pack(">I", 8)))
            connection.socket.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, 41, self.head(True)) + http2.frame(http2.DATA, http2.END_STREAM, 41, b"\0" * 5))
            self.assertEqual(self.answer(connection, 41), self.LIVE)

    def test_a_stream_that_ends_within_a_message_has_failed(self):
        with http2.Http2(server) as connection:
            connection.head(1, "/inference.GRPCInferenceService/ModelStreamInfer", ("content-type", "application/grpc"))
            connection.data(1, b"\0\0\0\0\5abc", end=True)
            connection.until(http2.HEADERS, 1)
            self.assertIn(b"13", connection.until(http2.HEADERS, 1)[3])  # INTERNAL


if __name__ == "__main__":
    unittest.main()
