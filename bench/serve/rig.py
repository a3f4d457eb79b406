"""The measurements of weir serve share this: a repository of synthetic models, and a server that is
measured."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


# One row of 16 numbers for the model `noop`, by the binary extension and by gRPC.
FLOATS = struct.pack("<16f", *range(16))
REST_HEAD = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [
    {"name": "X", "datatype": "FP32", "shape": [1, 16], "parameters": {"binary_data_size": 64}}]}).encode()


def field(number, data):
    """A length-delimited field of protobuf."""
    data = data.encode() if isinstance(data, str) else data
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def grpc_frame():
    message = field(1, "noop") + field(5, field(1, "X") + field(2, "FP32") + field(3, b"\1\20")) + field(7, FLOATS)
    return b"\0" + struct.pack(">I", len(message)) + message


def h2load(port, requests, folder, path, data, *options):
    """So many requests of one kind, none of which may fail; the rate."""
    body = folder / "request"
    body.write_bytes(data)
    said = subprocess.run(["h2load", "-n%d" % requests, "-d", body, *options, "http://127.0.0.1:%d%s" % (port, path)],
                          capture_output=True, text=True, check=True).stdout
    assert re.search(r" 0 failed, 0 errored", said) and " %d 2xx" % requests in said, said
    return requests, float(re.search(r", ([\d.]+) req/s", said)[1])


def grpc(port, requests, folder, path):
    return h2load(port, requests, folder, path, grpc_frame(), "-c8", "-m32", "-H", "content-type: application/grpc", "-H", "te: trailers")


def rest(port, requests, folder, path):
    return h2load(port, requests, folder, path, REST_HEAD + FLOATS, "--h1", "-c64", "-H", "inference-header-content-length: %d" % len(REST_HEAD))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def cpu_us(pid):
    """User and system time of a process."""
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")


# Two mixes of models, as us, us a row, deadline in us, and share of the requests.
WORKLOADS = {"A": [(1000, 150, 25000, 35), (2500, 550, 60000, 15), (400, 60, 10000, 50)],
             "B": [(3000, 500, 120000, 15), (300, 20, 10000, 60), (1500, 300, 40000, 25)]}


def repository_of(workload, with_deadlines=False, engine="synthetic"):
    """On the engine kernels the models occupy the GPU for these times, without jitter of their own."""
    repository = Repository()
    for i, (us, us_per_row, deadline, _) in enumerate(WORKLOADS[workload]):
        if engine == "kernels":
            repository.add_kernels("m%d" % i, 32, [{"copy": {"from": "X", "to": "Y", "bytes": {"rows": 64}}}, spin(us, us_per_row)])
            continue
        repository.add("m%d" % i, 32, us=us, us_per_row=us_per_row, jitter=.03, how="sleep", seed=i + 1,
                       hiccups={"probability": .001, "us": 2000}, deadline_us=deadline if with_deadlines else 0)
    return repository


def models_of(workload, transit):
    """Options of bench-serve: clients tell the server what is left of their deadline without the way there and back."""
    options = []
    for i, (_, _, deadline, share) in enumerate(WORKLOADS[workload]):
        options += ["--model", "m%d,share=%d,deadline=%d,ask=%d" % (i, share, deadline, deadline - transit)]
    return options


def spin(us, us_per_row):
    """A launch that lasts so long."""
    return {"kernel": "spin", "grid": [1, 1, 1], "block": [1, 1, 1], "arguments": [{"u64": {"rows": 1000 * us_per_row, "plus": 1000 * us}}]}


class Repository:
    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench."))

    def add(self, name, batch, width=16, deadline_us=0, **model):
        folder = self.path / name / "1"
        folder.mkdir(parents=True)
        shape = [-1, width]
        folder.joinpath("model.json").write_text(json.dumps(dict(
            model, inputs=[{"name": "X", "datatype": "FP32", "shape": shape}], outputs=[{"name": "Y", "datatype": "FP32", "shape": shape}])))
        deadline = 'parameters { key: "weir.deadline_us" value { string_value: "%d" } }\n' % deadline_us
        (self.path / name / "config.pbtxt").write_text('backend: "synthetic"\nmax_batch_size: %d\ndynamic_batching { }\n%s' % (
            batch, deadline if deadline_us else ""))

    def add_kernels(self, name, batch, launches, width=16, buffers=(), graphs=True):
        folder = self.path / name / "1"
        folder.mkdir(parents=True)
        shutil.copy(pathlib.Path(__file__).parent / "work.ptx", folder)
        shape = [-1, width]
        folder.joinpath("kernels.json").write_text(json.dumps({
            "image": "work.ptx", "inputs": [{"name": "X", "datatype": "FP32", "shape": shape}],
            "outputs": [{"name": "Y", "datatype": "FP32", "shape": shape}], "buffers": list(buffers), "launches": launches}))
        (self.path / name / "config.pbtxt").write_text('backend: "kernels"\nmax_batch_size: %d\ndynamic_batching { }\n'
                                                       'parameters { key: "graphs" value { string_value: "%d" } }\n' % (batch, graphs))

    def remove(self):
        shutil.rmtree(self.path)


class Server:
    def __init__(self, build, repository, *options, command=None):
        self.port = free_port()
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command or [build + "/bin/weir", "serve", "--listen=127.0.0.1:%d" % self.port, *options, str(repository)],
                                        stdout=self.log, stderr=self.log)
        self.pid = self.process.pid

    def wait(self, path="/v2/health/ready"):
        for _ in range(600):
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.port, path)):
                    return self
            except OSError:
                time.sleep(.1)
            if self.process.poll() is not None:
                break
        self.log.seek(0)
        raise SystemExit("the server does not come: " + self.log.read())

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.log.close()


def load(build, server, *options):
    """The JSON of bench-serve; a void run says so in it."""
    done = subprocess.run([build + "/bench/bench-serve", "--to", "127.0.0.1:%d" % server.port, *options], stdout=subprocess.PIPE, text=True)
    if done.returncode > 1:
        raise SystemExit(done.returncode)
    return json.loads(done.stdout)
