"""Whether `weir whatif --serve` predicts what a server does: the same arrivals, simulated and real.

	predicted.py BUILD [--workload A] [--rates 1000,2000,3000] [--policies slack,delay] [--seconds 10] [--seed 1]

The server runs first and saves the latencies that it measured; then the simulation answers the same requests from them.
Goodput and p99 of both, and their ratios, as JSON.
"""
import argparse
import json
import pathlib
import random
import subprocess

import rig


def arrivals(workload, rate, seconds, seed):
    shares = [share for _, _, _, share in rig.WORKLOADS[workload]]
    draw, at, lines = random.Random(seed), 0, []
    while (at := at + draw.expovariate(rate)) < seconds:
        lines.append("%.6f m%d\n" % (at, draw.choices(range(len(shares)), shares)[0]))
    return "".join(lines)


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("build")
    asked.add_argument("--workload", default="A")
    asked.add_argument("--rates", default="1000,2000,3000", type=lambda text: [int(r) for r in text.split(",")])
    asked.add_argument("--policies", default="slack,delay", type=lambda text: text.split(","))
    asked.add_argument("--seconds", default=10, type=int)
    asked.add_argument("--seed", default=1, type=int)
    asked.add_argument("--behind", default=.001, type=float, help="as of bench-serve")
    o = asked.parse_args()
    rows = []
    for policy in o.policies:
        repository = rig.repository_of(o.workload, with_deadlines=True)
        try:
            for rate in o.rates:
                file = repository.path.parent / (repository.path.name + ".arrivals")
                file.write_text(arrivals(o.workload, rate, o.seconds, o.seed))
                server = rig.Server(o.build, repository.path, "--policy=" + policy).wait()
                real = rig.load(o.build, server, *rig.models_of(o.workload, 0), "--arrivals", str(file), "--warm", "0",
                                "--seconds", str(o.seconds), "--behind", str(o.behind))["run"]
                server.end()
                said = subprocess.run([o.build + "/bin/weir", "whatif", "--serve=%s" % repository.path, "--arrivals=%s" % file, "--policy=" + policy, "--json"],
                                      stdout=subprocess.PIPE, text=True, check=True).stdout
                file.unlink()
                predicted = json.loads(said)["policies"][0]
                p99 = predicted["p99_ns"] / 1e3 if predicted["p99_ns"] else None
                rows.append({"policy": policy, "rate": rate, "void": real["void"], "goodput": real["goodput"], "goodput_predicted": predicted["goodput"],
                             "p99_us": real["p99_us"], "p99_us_predicted": p99, "goodput_ratio": predicted["goodput"] / real["goodput"],
                             "p99_ratio": p99 / real["p99_us"] if p99 else None})
        finally:
            repository.remove()
    print(json.dumps({"workload": o.workload, "seconds": o.seconds, "seed": o.seed, "rows": rows}, indent=1))


main()
