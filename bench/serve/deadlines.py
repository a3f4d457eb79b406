"""How much more `slack` answers in time than the best fixed delay, by how short deadlines are: deadlines.py BUILD

Simulated by `weir whatif --serve` with three models that last as long as those of h200.py do on an H200, in batches of up to 16
rows.  Deadlines are so many times the time of one row.  JSON: for each, the rates of requests at which 99 % are in time.
"""
import json
import subprocess
import sys

import rig

MODELS = {"resnet50": (900, 130, 20), "encoder": (800, 80, 60), "ocr": (450, 50, 20)}  # us, us a row, per cent of requests
TIMES, DELAYS = (5, 7, 10, 15, 25), ("0", "500us", "1ms", "2ms")


def goodput(weir, repository, rate, policy, delay):
    said = subprocess.run([weir, "whatif", "--serve=%s" % repository, "--policy=" + policy, "--delay=" + delay, "--json", "--seconds=8",
                           *("--arrivals=%s=poisson:%.1f" % (n, rate * share / 100) for n, (_, _, share) in MODELS.items())],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(said)["policies"][0]["goodput"]


def highest(*asked, low=300, high=20000):
    while high / low > 1.01:
        middle = (low * high) ** .5
        low, high = (middle, high) if goodput(asked[0], asked[1], middle, *asked[2:]) >= .99 else (low, middle)
    return low


def main():
    build, found = sys.argv[1], []
    for times in TIMES:
        repository = rig.Repository()
        for name, (us, us_per_row, _) in MODELS.items():
            repository.add(name, 16, us=us, us_per_row=us_per_row, jitter=.03, how="sleep", seed=1, deadline_us=times * (us + us_per_row))
        try:
            rig.Server(build, repository.path).wait().end()  # it measures its models
            asked = build + "/bin/weir", repository.path
            slack, delay = highest(*asked, "slack", "0"), max(highest(*asked, "delay", d) for d in DELAYS)
        finally:
            repository.remove()
        found.append({"deadline_times_one_row": times, "slack_per_s": round(slack), "best_delay_per_s": round(delay), "more": round(slack / delay - 1, 3)})
        print(found[-1], file=sys.stderr)
    print(json.dumps(found, indent=1))


main()
