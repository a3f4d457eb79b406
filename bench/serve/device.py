"""The cost of the device path: a model of many kernels, with and without a graph, on a GPU or on
the simulated driver.

	device.py BUILD [--sim] [--kernels 64] [--rounds 3] [--seconds 2]

Two models add one to 16 numbers, KERNELS times in a row; one runs as a graph, the other one launch at a time.  One client asks
them in turns, in a closed loop.  `cpu_us` is the server's processor time a request, and `p50_us` the round trip.  On a GPU the
answers are compared with the sums.  Medians of the rounds, as JSON.
"""
import argparse
import json
import statistics
import urllib.request

import rig


def chain(kernels):
    """X + 1 + 1 ... in Y."""
    one = {"u32": {"rows": 16}}
    shape = {"kernel": "add_one", "grid": [{"rows": 16, "over": 128}, 1, 1], "block": [128, 1, 1]}
    launches = [dict(shape, arguments=[{"buffer": "Y"}, {"buffer": "X"}, one])]
    return launches + [dict(shape, arguments=[{"buffer": "Y"}, {"buffer": "Y"}, one])] * (kernels - 1)


def answer(server, model, rows):
    asked = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [rows, 16], "data": list(range(16 * rows))}]}
    with urllib.request.urlopen("http://127.0.0.1:%d/v2/models/%s/infer" % (server.port, model), json.dumps(asked).encode()) as said:
        return json.load(said)["outputs"][0]["data"]


def measure(o, server, model):
    before = rig.cpu_us(server.pid)
    run = rig.load(o.build, server, "--model", model, "--arrivals", "closed:1", "--seconds", str(o.seconds), "--warm", "0")["run"]
    return {"cpu_us": (rig.cpu_us(server.pid) - before) / (run["answered_per_s"] * run["seconds"]), "p50_us": run["p50_us"], "p99_us": run["p99_us"],
            "rate": run["answered_per_s"]}


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("build")
    asked.add_argument("--sim", action="store_true")
    asked.add_argument("--kernels", type=int, default=64)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--seconds", type=float, default=2)
    o = asked.parse_args()
    repository = rig.Repository()
    repository.add_kernels("graph", 8, chain(o.kernels))
    repository.add_kernels("plain", 8, chain(o.kernels), graphs=False)
    server = rig.Server(o.build, repository.path, *(["--sim"] if o.sim else [])).wait()
    rows = {"graph": [], "plain": []}
    right = None
    try:
        if not o.sim:
            right = all(answer(server, model, n) == [x + o.kernels for x in range(16 * n)] for model in rows for n in (1, 3, 8) for _ in range(3))
        for _ in range(o.rounds):
            for model, of in rows.items():
                of.append(measure(o, server, model))
        with urllib.request.urlopen("http://127.0.0.1:%d/v2/models/graph/stats" % server.port) as said:
            replays = json.load(said)["model_stats"][0]["weir_graph_replays"]
    finally:
        server.end()
        repository.remove()
    print(json.dumps({"kernels": o.kernels, "right": right, "replays": replays, "medians": {
        name: {key: round(statistics.median(row[key] for row in of), 2) for key in of[0]} for name, of in rows.items()}, "all": rows}, indent=1))


main()
