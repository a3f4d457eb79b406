"""How many requests a second are answered in time: the policies of weir serve on two mixes of models, in real time.

	goodput.py BUILD [--engine synthetic] [--workloads A,B] [--policies slack,delay:0,...] [--seeds 1,2,3,4,5] [--seconds 5]

The models are synthetic ones that sleep for a + b x rows microseconds, with 3 % of jitter and now and then 2 ms more; or,
with --engine kernels, they occupy a GPU for that time.  For
each policy and seed bench-serve looks for the highest rate at which 99 % and 99.9 % of all requests are answered by their
deadlines (open loop, latency from the due time).  Then the first policy is asked for 100 to 300 % of its own rate at 99 %.
Clients tell the server a deadline that is --transit microseconds shorter than theirs, for the way there and back.  Medians
over the seeds; JSON on standard output, a table on standard error.
"""
import argparse
import json
import os
import statistics
import sys

import rig

POLICIES = "slack,edf,fifo,delay:0,delay:500us,delay:1ms,delay:2ms,delay:4ms"
SHARES = (99, 99.9)
OVERLOADS = (100, 150, 200, 300)


def with_server(o, repository, policy, then):
    name, _, delay = policy.partition(":")
    server = rig.Server(o.build, repository.path, "--policy=" + name, *(["--delay=" + delay] if delay else [])).wait()
    try:
        return then(server)
    finally:
        server.end()


def rates(o, workload, repository, policy, seed):
    found = with_server(o, repository, policy, lambda server: rig.load(
        o.build, server, *rig.models_of(workload, o.transit), "--arrivals", "poisson:500", "--seconds", str(o.seconds), "--warm", "1",
        "--seed", str(1000 * seed), "--precision", str(o.precision), "--find-rate", ",".join(map(str, SHARES)), "--behind", str(o.behind)))
    return {"workload": workload, "policy": policy, "seed": seed, "rates": found["rates"], "probes": found["probes"]}


def overload(o, workload, repository, policy, rate, seed):
    runs = {}
    for percent in OVERLOADS:
        runs[percent] = with_server(o, repository, policy, lambda server: rig.load(
            o.build, server, *rig.models_of(workload, o.transit), "--arrivals", "poisson:%.0f" % (rate * percent / 100), "--seconds", str(2 * o.seconds),
            "--warm", "2", "--seed", str(1000 * seed + percent), "--behind", str(o.behind))["run"])
    met = {percent: run["met"] / run["seconds"] for percent, run in runs.items()}
    return {"workload": workload, "policy": policy, "seed": seed, "rate": rate, "runs": runs,
            "met_against_100": {percent: met[percent] / met[100] if met[100] else None for percent in OVERLOADS},
            "late_share": {percent: run["late_share"] for percent, run in runs.items()}}


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def table(found, policies, workloads):
    print("%-14s" % "policy" + "".join("%12s %5.1f %%" % (w, s) for w in workloads for s in SHARES), file=sys.stderr)
    for policy in policies:
        row = "%-14s" % policy
        for workload in workloads:
            for i in range(len(SHARES)):
                of = [f["rates"][i] for f in found if f["policy"] == policy and f["workload"] == workload]
                value = median(r["rate"] for r in of)
                row += "%19s" % ("-" if value is None else "%.0f%s" % (value, "*" if any(r["void"] for r in of) else ""))
        print(row, file=sys.stderr)
    print("* in a probe the generator fell behind, and so it did in its repetitions", file=sys.stderr)


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("build")
    asked.add_argument("--engine", default="synthetic", choices=("synthetic", "kernels"))
    asked.add_argument("--workloads", default="A,B", type=lambda text: text.split(","))
    asked.add_argument("--policies", default=POLICIES, type=lambda text: text.split(","))
    asked.add_argument("--seeds", default="1,2,3,4,5", type=lambda text: [int(s) for s in text.split(",")])
    asked.add_argument("--seconds", default=5, type=float)
    asked.add_argument("--precision", default=.03, type=float)
    asked.add_argument("--transit", default=300, type=int)
    asked.add_argument("--no-overload", action="store_true")
    asked.add_argument("--behind", default=.001, type=float, help="as of bench-serve")
    o = asked.parse_args()
    found, overloads = [], []
    for workload in o.workloads:
        repository = rig.repository_of(workload, engine=o.engine)
        try:
            for policy in o.policies:
                found += [rates(o, workload, repository, policy, seed) for seed in o.seeds]
            first = median(f["rates"][0]["rate"] for f in found if f["policy"] == o.policies[0] and f["workload"] == workload)
            if first and not o.no_overload:
                overloads += [overload(o, workload, repository, o.policies[0], first, seed) for seed in o.seeds]
        finally:
            repository.remove()
    table(found, o.policies, o.workloads)
    for one in overloads:
        print("%s %s seed %d: " % (one["workload"], one["policy"], one["seed"]) + ", ".join(
            "%d %%: met %.3f of 100 %%, late %.3f %%" % (p, one["met_against_100"][p] or 0, 100 * (one["late_share"][p] or 0)) for p in OVERLOADS), file=sys.stderr)
    print(json.dumps({"workloads": {w: rig.WORKLOADS[w] for w in o.workloads}, "seeds": o.seeds, "seconds": o.seconds, "transit_us": o.transit,
                      "processors": os.cpu_count(), "found": found, "overload": overloads}, indent=1))


main()
