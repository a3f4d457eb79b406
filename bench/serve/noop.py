"""The cost of the server itself: a model that takes no time, by HTTP and by gRPC.

	noop.py BUILD [--rounds 3] [--seconds 5]

The processor time of the server a request (user and system, from /proc) by wrk with 64 connections over HTTP with the binary
extension, and by h2load with 8 connections of 32 streams over gRPC; the round trip of one idle connection by bench-serve.
Beside it, in turns: nginx with `return 200`, where it is installed, and for the round trip bench-bare, the least that a server can
do.  Medians of the rounds, as JSON.  The packages come by `tools/deps.sh bench`.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

import rig


def wrk(port, seconds, folder, path):
    body = "".join("\\%03d" % byte if not 32 <= byte < 127 or byte in b'"\\' else chr(byte) for byte in rig.REST_HEAD) + \
        "".join("\\%03d" % byte for byte in rig.FLOATS)
    script = folder / "infer.lua"
    script.write_text('wrk.method = "POST"\nwrk.headers["Inference-Header-Content-Length"] = "%d"\nwrk.body = "%s"\n' % (len(rig.REST_HEAD), body))
    said = subprocess.run(["wrk", "-t1", "-c64", "-d%ds" % seconds, "-s", script, "http://127.0.0.1:%d%s" % (port, path)],
                          capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said and "Socket errors" not in said, said
    return int(re.search(r"(\d+) requests in", said)[1]), float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])


def nginx(folder):
    port = rig.free_port()
    (folder / "nginx.conf").write_text("""daemon off; worker_processes 1; pid %s/nginx.pid; error_log stderr;
events { worker_connections 1024; }
http { access_log off; client_body_temp_path %s/body; keepalive_requests 100000000;
server { listen 127.0.0.1:%d; listen 127.0.0.1:%d http2; location / { return 200 "ok"; } } }
""" % (folder, folder, port, port2 := rig.free_port()))
    server = rig.Server(None, None, command=["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"])
    server.port, server.port2 = port, port2
    server.wait("/")
    # the worker answers, not the process that was started
    children = pathlib.Path("/proc/%d/task/%d/children" % (server.pid, server.pid)).read_text().split()
    server.pid = int(children[0])
    return server


def bare(build):
    port = rig.free_port()
    server = rig.Server(None, None, command=[build + "/bench/bench-bare", str(port)])
    server.port = port
    return server.wait("/v2/models/noop")


def measure(server, what, *how):
    before = rig.cpu_us(server.pid)
    requests, rate = what(*how)
    return {"cpu_us": (rig.cpu_us(server.pid) - before) / requests, "rate": rate}


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("build")
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--seconds", type=int, default=5)
    o = asked.parse_args()
    for tool in ("wrk", "h2load"):
        if not shutil.which(tool):
            raise SystemExit(tool + " is not installed: tools/deps.sh bench")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench."))
    repository = rig.Repository()
    repository.add("noop", 32, how="spin")  # which takes no time at all, where a sleep of nothing is a call of the system
    weir = rig.Server(o.build, repository.path).wait()
    least = bare(o.build)
    other = nginx(folder) if shutil.which("nginx") else None
    rows = {}
    try:
        for _ in range(o.rounds):
            turns = [("weir http", weir, wrk, weir.port, o.seconds, folder, "/v2/models/noop/infer"),
                     ("weir grpc", weir, rig.grpc, weir.port, 100000 * o.seconds, folder, "/inference.GRPCInferenceService/ModelInfer")]
            if other:
                turns += [("nginx http", other, wrk, other.port, o.seconds, folder, "/"),
                          ("nginx http2", other, rig.grpc, other.port2, 50000 * o.seconds, folder, "/")]
            for name, server, what, *how in turns:
                rows.setdefault(name, []).append(measure(server, what, *how))
            for name, server in (("weir idle", weir), ("bare idle", least)):
                idle = rig.load(o.build, server, "--model", "noop", "--arrivals", "closed:1", "--seconds", str(o.seconds), "--warm", ".2")["run"]
                rows.setdefault(name, []).append({"p50_us": idle["p50_us"], "p99_us": idle["p99_us"]})
    finally:
        weir.end()
        least.end()
        if other:
            other.end()
        repository.remove()
        shutil.rmtree(folder)
    print(json.dumps({"rounds": o.rounds, "seconds": o.seconds, "processors": os.cpu_count(), "medians": {
        name: {key: round(statistics.median(row[key] for row in of), 2) for key in of[0]} for name, of in rows.items()}, "all": rows}, indent=1))


main()
