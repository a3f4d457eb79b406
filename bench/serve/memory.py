"""Whether the server's memory grows with the requests that it has answered.

	memory.py BUILD [--requests 1000000]

Half of the requests come over HTTP with the binary extension and half over gRPC, by h2load; a tenth of them come before, so that
every part of the server has what it keeps.  Prints the resident memory before and after as JSON, and exits 1 if it grew by more
than one byte a request.
"""
import argparse
import json
import pathlib
import shutil
import tempfile

import rig


def resident_kib(pid):
    return int(pathlib.Path("/proc/%d/status" % pid).read_text().split("VmRSS:")[1].split()[0])


def ask(server, requests, folder):
    rig.rest(server.port, requests // 2, folder, "/v2/models/noop/infer")
    rig.grpc(server.port, requests // 2, folder, "/inference.GRPCInferenceService/ModelInfer")
    return resident_kib(server.pid)


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("build")
    asked.add_argument("--requests", type=int, default=1000000)
    o = asked.parse_args()
    if not shutil.which("h2load"):
        raise SystemExit("h2load is not installed: tools/deps.sh bench")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench."))
    repository = rig.Repository()
    repository.add("noop", 32, how="spin")
    server = rig.Server(o.build, repository.path).wait()
    try:
        start = resident_kib(server.pid)
        before = ask(server, o.requests // 10, folder)
        after = ask(server, o.requests, folder)
    finally:
        server.end()
        repository.remove()
        shutil.rmtree(folder)
    print(json.dumps({"requests": o.requests, "kib": {"start": start, "before": before, "after": after}}))
    raise SystemExit((after - before) * 1024 > o.requests)


main()
