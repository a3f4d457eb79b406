"""How often weir serve is later than it promised, and whether what is admitted is answered in time.

	promises.py BUILD [--workload A] [--rate 1500] [--requests 20000] [--batches 500] [--rounds 5]

After the first batches of a server, which teach it, so many requests arrive in an open loop.  `late_batches` is the share
of batches that took longer than the upper quantile from which their requests were promised (1 % is meant);
`late_requests` is the share of admitted requests that the server answered behind their deadline.  Medians of the rounds,
as JSON.
"""
import argparse
import json
import re
import statistics
import urllib.request

import rig


def counters(server):
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % server.port) as answer:
        text = answer.read().decode()
    total = lambda name, label="": sum(float(value) for labels, value in re.findall(r"^%s\{(.*)\} (.*)$" % name, text, re.M) if label in labels)
    return {"batches": total("weir_serve_prediction_error_ratio_count"), "kept": total("weir_serve_prediction_error_ratio_bucket", 'le="1"'),
            "met": total("weir_serve_deadline_total", 'result="met"'), "late": total("weir_serve_deadline_total", 'result="late"')}


def one(o, repository, seed):
    server = rig.Server(o.build, repository.path).wait()
    ask = lambda seconds, more: rig.load(o.build, server, *rig.models_of(o.workload, o.transit), "--arrivals", "poisson:%d" % o.rate, "--warm", "0",
                                         "--seconds", str(seconds), "--seed", str(seed + more), "--behind", str(o.behind))["run"]
    try:
        while (before := counters(server))["batches"] < o.batches:
            ask(.5, int(before["batches"]))
        run = ask(o.requests / o.rate, 1)
        after = counters(server)
    finally:
        server.end()
    did = {key: after[key] - before[key] for key in after}
    return {"seed": seed, "void": run["void"], "batches": did["batches"], "late_batches": 1 - did["kept"] / did["batches"],
            "requests": run["due"], "late_requests": did["late"] / (did["met"] + did["late"]), "goodput": run["goodput"]}


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("build")
    asked.add_argument("--workload", default="A")
    asked.add_argument("--rate", default=1500, type=int)
    asked.add_argument("--requests", default=20000, type=int)
    asked.add_argument("--batches", default=500, type=int)
    asked.add_argument("--rounds", default=5, type=int)
    asked.add_argument("--transit", default=300, type=int)
    asked.add_argument("--behind", default=.001, type=float, help="as of bench-serve")
    o = asked.parse_args()
    repository = rig.repository_of(o.workload)
    try:
        rounds = [one(o, repository, 1000 * (i + 1)) for i in range(o.rounds)]
    finally:
        repository.remove()
    print(json.dumps({"workload": o.workload, "rate": o.rate, "rounds": rounds, "medians": {
        key: statistics.median(r[key] for r in rounds) for key in ("late_batches", "late_requests", "goodput")}}, indent=1))


main()
