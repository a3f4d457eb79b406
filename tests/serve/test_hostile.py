"""Connections with frames in any order, requests with wrong bytes, and clients that leave: the server lives, and ends as always.

The same ones each time; WEIR_SEED has others.  With sanitizers it is the memory of streams and connections that is tested.
"""
import json
import os
import random
import socket
import struct
import unittest

import cases
import http2
from server import Repository, Server, values

CONNECTIONS = 3000
OPEN_MOST = 40
GRPC = "/inference.GRPCInferenceService/"
PATHS = [GRPC + method for method in ("ModelInfer", "ModelStreamInfer", "ServerLive", "ModelReady", "ModelStatistics", "TraceSetting", "None")] + \
    ["/v2/models/echo/infer", "/v2/models/slow/infer", "/v2/health/ready", "/metrics", "/", "/v2/%zz"]
FIELDS = [("content-type", "application/grpc"), ("te", "trailers"), ("grpc-encoding", "gzip"), ("grpc-timeout", "1m"), ("content-encoding", "gzip"),
          ("inference-header-content-length", "7"), ("content-length", "3"), ("triton_grpc_error", "true"), ("weir-time", "1"), ("Upper", "case")]
REQUESTS = [case[1] for case in cases.CONTROL + cases.ANSWERS + cases.REFUSALS + cases.HOSTILE if len(case[1]) < 3000]
INFER = b"\x0a\x04echo\x2a\x0f\x0a\x01X\x12\x04FP32\x1a\x02\x01\x04\x3a\x10" + cases.FLOATS


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def changed(self, data):
        data = bytearray(data)
        for _ in range(self.random.randrange(1, 5)):
            data[self.random.randrange(len(data))] = self.random.randrange(256)
        return bytes(data)

    def message(self):
        message = self.random.choice((INFER, self.changed(INFER)))
        length = len(message) + self.random.choice((0, 0, 0, 1, -1, 100000))
        return bytes([self.random.choice((0, 0, 0, 1, 2))]) + struct.pack(">I", length) + message

    def head(self, stream):
        pick = self.random
        fields = http2.fields((":method", pick.choice(("POST", "POST", "GET", "HEAD", "PUT"))), (":scheme", "http"), (":path", pick.choice(PATHS)),
                              (":authority", "x"), *pick.sample(FIELDS, pick.randrange(4)))
        flags = pick.choice((http2.END_HEADERS, http2.END_HEADERS, http2.END_HEADERS | http2.END_STREAM, 0))
        more = http2.frame(http2.CONTINUATION, http2.END_HEADERS, stream, b"") if not flags and pick.random() < .7 else b""
        return http2.frame(http2.HEADERS, flags, stream, fields) + more

    def frame(self, stream):
        pick = self.random
        kind = pick.choices(("data", "reset", "window", "ping", "goodbye", "trailers", "any"), (40, 7, 5, 3, 2, 3, 5))[0]
        near = max(1, stream - 2 * pick.randrange(3))
        if kind == "data":
            data = pick.choice((self.message(), self.message() * 2, self.message()[:pick.randrange(30)], json.dumps(cases.echo(cases.ROW)).encode(), b""))
            return http2.frame(http2.DATA, pick.choice((0, 0, http2.END_STREAM, http2.PADDED)), near, data)
        if kind == "reset":
            return http2.frame(http2.RST_STREAM, 0, near, struct.pack(">I", pick.randrange(14)))
        if kind == "window":
            return http2.frame(http2.WINDOW_UPDATE, 0, pick.choice((0, near)), struct.pack(">I", pick.choice((0, 1, 65535, 2**31 - 1))))
        if kind == "ping":
            return http2.frame(http2.PING, pick.choice((0, http2.ACK)), 0, b"12345678")
        if kind == "goodbye":
            return http2.frame(http2.GOAWAY, 0, 0, struct.pack(">II", near, 0))
        if kind == "trailers":
            return http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, near, http2.fields(("x-last", "1")))
        return http2.frame(pick.randrange(12), pick.randrange(256), pick.randrange(9), pick.randbytes(pick.randrange(40)))

    def frames(self):
        pick, stream = self.random, 1
        settings = [(pick.choice((1, 2, 3, 4, 5, 6, 0xfe03)), pick.choice((0, 1, 100, 16384, 65535, 2**31 - 1))) for _ in range(pick.randrange(3))]
        out = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", http2.frame(http2.SETTINGS, 0, 0, b"".join(struct.pack(">HI", *one) for one in settings))]
        for _ in range(pick.randrange(1, 25)):
            if pick.random() < .35:
                out.append(self.head(stream))
                stream += 2 * pick.choices((0, 1, 2), (1, 5, 2))[0]
            else:
                out.append(self.frame(stream))
        return b"".join(out)

    def requests(self):
        data = b"".join(self.random.choice(REQUESTS) for _ in range(self.random.randrange(1, 5)))
        return data if self.random.random() < .3 else self.changed(data)

    def connection(self, server):
        pick = self.random
        data = self.frames() if pick.random() < .6 else self.requests()
        step, half, reads = pick.choice((len(data), len(data), 100, 7)), pick.random() < .3, pick.random() < .5
        connection = server.connect()
        try:
            connection.settimeout(.01)  # whether an answer is read is not tested
            for at in range(0, len(data), step):
                connection.sendall(data[at:at + step])
            if half:
                connection.shutdown(socket.SHUT_WR)
            if reads:
                connection.recv(4096)
        except OSError:
            pass
        return connection


class Hostile(unittest.TestCase):
    def setUp(self):
        repository = Repository("hostile").standard()
        names = sorted(path.name for path in repository.path.iterdir())
        self.server = Server(repository.path, "--model-control=explicit", *["--load-model=" + name for name in names])

    def test_a_stream_that_has_no_answer_ends(self):
        with http2.Http2(self.server) as connection:
            for stream, sent in ((1, b""), (3, b"\0\0\0\0\5abc"), (5, b"\1\0\0\0\0")):
                connection.head(stream, GRPC + "ModelStreamInfer", ("content-type", "application/grpc"))
                connection.until(http2.HEADERS, stream)
                connection.data(stream, sent, end=True)
                while not connection.receive()[1] & http2.END_STREAM:
                    pass
        self.assertEqual(self.server.end(), 0)

    def test_the_server_outlives_them(self):
        seed, server = int(os.environ.get("WEIR_SEED", 1)), self.server
        maker, connections = Maker(seed), []
        for i in range(CONNECTIONS):
            connections.append(maker.connection(server))
            if len(connections) > OPEN_MOST:
                connections.pop(maker.random.randrange(len(connections))).close()
            self.assertIsNone(server.process.poll(), "WEIR_SEED=%d, connection %d: %s" % (seed, i, server.said()))
        for connection in connections:
            connection.close()
        server.wait_for(lambda: values(server)["weir_serve_connections"] == 1)
        self.assertEqual(server.infer("echo", cases.echo(cases.ROW)).code, 200)
        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    unittest.main()
