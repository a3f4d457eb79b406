"""A server of models for tests: its repository, its process, and requests to it byte by byte."""
import http.client
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import time

WEIR = os.environ["WEIR_BIN"]
SCRATCH = os.environ["WEIR_SCRATCH"]
PATIENCE = 120  # seconds until something that must come has not come; nothing is timed

TYPES = {"BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8, "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
         "FP16": 2, "FP32": 4, "FP64": 8, "BF16": 2, "BYTES": 0}


def tensor(name, datatype="FP32", *shape, **more):
    return dict({"name": name, "datatype": datatype, "shape": list(shape)}, **more)


class Repository:
    """A folder of models of the engine `synthetic`: what goes in comes out."""

    def __init__(self, name):
        self.path = pathlib.Path(SCRATCH) / name
        subprocess.run(["rm", "-rf", self.path], check=True)
        self.path.mkdir(parents=True)

    def add(self, name, inputs, outputs, config="", batch=8, versions=(1,), **model):
        folder = self.path / name
        for version in versions:
            (folder / str(version)).mkdir(parents=True, exist_ok=True)
            (folder / str(version) / "model.json").write_text(json.dumps(dict(model, inputs=inputs, outputs=outputs)))
        (folder / "config.pbtxt").write_text('backend: "synthetic"\nmax_batch_size: %d\n%s\n' % (batch, config))
        return folder

    def quick(self):
        """Models that take no time, and are ready at once."""
        self.add("echo", [tensor("X", "FP32", -1, 4)], [tensor("Y", "FP32", -1, 4)])
        self.add("flat", [tensor("X", "INT32", -1)], [tensor("Y", "INT32", -1)], batch=0)
        self.add("two", [tensor("A", "INT64", -1, 1), tensor("B", "INT64", -1, 1, optional=True)],
                 [tensor("A2", "INT64", -1, 1), tensor("B2", "INT64", -1, 1)])
        return self

    def standard(self):
        self.quick()
        self.add("types", [tensor("in_" + t, t, -1, 2) for t in TYPES], [tensor("out_" + t, t, -1, 2) for t in TYPES])
        self.add("many", [tensor("X", "FP32", -1, 4)], [tensor("Y", "FP32", -1, 4)], versions=(1, 2, 30),
                 config="version_policy { all { } }")
        self.add("slow", [tensor("X", "FP32", -1, 1)], [tensor("Y", "FP32", -1, 1)], batch=1, us=300000)
        self.add("narrow", [tensor("X", "FP32", -1, 1)], [tensor("Y", "FP32", -1, 1)], batch=1, us=1000000,
                 config="dynamic_batching { default_queue_policy { max_queue_size: 2 } }")
        self.add("fails", [tensor("X", "FP32", -1, 1)], [tensor("Y", "FP32", -1, 1)], fail_every=2)
        reshape = lambda dims, own: "".join("%s { name: \"%s\" data_type: TYPE_FP32 dims: %s reshape { shape: %s } }\n" % (
            what, name, dims, own) for what, name in (("input", "X"), ("output", "Y")))
        self.add("shaped", [tensor("X", "FP32", 1, 4)], [tensor("Y", "FP32", 1, 4)], reshape([4], [1, 4]), batch=0)
        self.add("open_shaped", [tensor("X", "FP32", -1, 1, -1)], [tensor("Y", "FP32", -1, 1, -1)], reshape([-1, 1], [1, -1]))
        folder = self.add("labels", [tensor("X", "FP32", -1, 4)], [tensor("Y", "FP32", -1, 4)],
                          config='output { name: "Y" data_type: TYPE_FP32 dims: 4 label_filename: "labels.txt" }')
        (folder / "labels.txt").write_text("ant\nbee\ncat\ndog\n")
        return self


class Answer:
    def __init__(self, code, headers, body):
        self.code, self.headers, self.body = code, {k.lower(): v for k, v in headers}, body

    @property
    def json(self):
        at = self.headers.get("inference-header-content-length")
        return json.loads(self.body[:int(at)] if at else self.body)

    @property
    def binary(self):
        return self.body[int(self.headers["inference-header-content-length"]):]

    def __repr__(self):
        return "%d %s %s" % (self.code, self.headers, self.body[:300])


class Server:
    def __init__(self, repository, *options, wait=True, listen=None, limits=None):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.unix = listen[5:] if listen and listen.startswith("unix:") else None
        self.log = open(os.path.join(SCRATCH, "log.%d" % self.port), "w+")
        listen = listen or "127.0.0.1:%d" % self.port
        self.process = subprocess.Popen([WEIR, "serve", "--listen=" + listen, "--drain-delay=0", *options, str(repository)],
                                        stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
                                        preexec_fn=lambda: [resource.setrlimit(of, (soft, resource.getrlimit(of)[1])) for of, soft in limits.items()] if limits else None)
        if wait:
            self.wait_ready()

    def said(self):
        with open(self.log.name) as file:
            return file.read()

    def wait_ready(self):
        self.wait_for(lambda: self.ask("GET", "/v2/health/ready").code == 200)

    def wait_for(self, what):
        for _ in range(PATIENCE * 20):
            assert self.process.poll() is None, "the server ended: " + self.said()
            try:
                if what():
                    return
            except OSError:
                pass
            time.sleep(.05)
        raise AssertionError("it did not come: " + self.said())

    def connect(self):
        connection = socket.socket(socket.AF_UNIX if self.unix else socket.AF_INET)
        try:
            connection.settimeout(PATIENCE)
            connection.connect(self.unix or ("127.0.0.1", self.port))
            if not self.unix:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            connection.close()
            raise
        return connection

    @staticmethod
    def bytes_of(verb, path, body=None, headers=None):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        lines = ["%s %s HTTP/1.1" % (verb, path), "Host: localhost"]
        headers = dict(headers or {})
        if body is not None and "Content-Length" not in headers and "Transfer-Encoding" not in headers:
            headers["Content-Length"] = len(body)
        lines += ["%s: %s" % field for field in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")

    def send(self, data, pieces=1):
        """One answer to raw bytes, which go out in some number of pieces."""
        with self.connect() as connection:
            step = max(1, -(-len(data) // pieces))
            try:
                for at in range(0, len(data), step):
                    connection.sendall(data[at:at + step])
                    if pieces > 1:
                        os.sched_yield()
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has answered already
            return self.receive(connection)

    @staticmethod
    def receive(connection):
        response = http.client.HTTPResponse(connection)
        response.begin()
        return Answer(response.status, response.getheaders(), response.read())

    def send_http2(self, data):
        """One answer to the same bytes, over HTTP/2 by curl."""
        head, body = data.split(b"\r\n\r\n", 1)
        (verb, path, _), *fields = [line.decode().split(" ", 2) for line in head.split(b"\r\n")]
        options = [option for name, *value in fields if name not in ("Host:", "Content-Length:", "Transfer-Encoding:")
                   for option in ("-H", " ".join([name, *value]))]
        done = subprocess.run(["curl", "-s", "-S", "--path-as-is", "--http2-prior-knowledge", "-D", "/dev/stderr", "-X", verb, "-H", "Content-Type:", "-H", "Expect:",
                               *options, *(["--data-binary", "@-"] if body else []), "http://127.0.0.1:%d%s" % (self.port, path)],
                              input=body, capture_output=True, timeout=PATIENCE)
        first, *lines = done.stderr.decode().split("\r\n")
        assert done.returncode == 0 and first.startswith("HTTP/2 "), (done.stderr, done.stdout)
        return Answer(int(first.split()[1]), [line.split(": ", 1) for line in lines if ": " in line], done.stdout)

    def ask(self, verb, path, body=None, headers=None, pieces=1):
        return self.send(self.bytes_of(verb, path, body, headers), pieces)

    def infer(self, model, body, headers=None, pieces=1):
        return self.ask("POST", "/v2/models/%s/infer" % model, body, headers, pieces)

    def end(self, how=signal.SIGTERM):
        """Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.log.close()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def values(server):
    """The values of /metrics: {(name, labels): value}."""
    text = server.ask("GET", "/metrics").body.decode()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[0] != "#"}
