"""Records what is kept here anew: record.py BUILD.

served.weir is a server of two models of one kernel each on the simulated driver, which is asked a few times, and
beside.weir a training that shares its device meanwhile.  Afterwards: tests/golden/golden.sh BUILD --update.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

here = pathlib.Path(__file__).resolve().parent
build = pathlib.Path(sys.argv[1]).resolve()
scratch = tempfile.TemporaryDirectory()
work = pathlib.Path(scratch.name)
os.environ.update(WEIR_BUILD=str(build), WEIR_BIN=str(build / "bin/weir"), WEIR_SCRATCH=str(work), XDG_RUNTIME_DIR=str(work),
                  WEIR_SIM="gpu=%s/gpu,time=real,speed=0.1" % work)
sys.path.insert(0, str(here.parent.parent / "serve"))
sys.dont_write_bytecode = True
import cases
from server import WEIR, Repository, Server
from test_requests import add_kernels

repository = Repository("repository")
add_kernels(repository, "small", 4000)
add_kernels(repository, "large", 40000)
server = Server(repository.path, "--sim", "-o", str(here / "served.weir"))


def ask(model, **headers):
    server.infer(model, cases.echo(cases.ROW), {name.replace("_", "-"): value for name, value in headers.items()})


def burst(models):
    threads = [threading.Thread(target=ask, args=(model,), kwargs={"Weir_Deadline_Us": "2000000"}) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


for model in ("small", "large") * 3:
    ask(model)
ask("small", Weir_Deadline_Us="1")
ask("nobody")
ask("small", traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
burst(["large", "small"] * 4)
with subprocess.Popen([WEIR, "record", "--sim", "--gpu", "-o", str(here / "beside.weir"), "--", str(build / "examples/batches")],
                      stdout=subprocess.DEVNULL) as training:
    while training.poll() is None:
        ask("large")
        time.sleep(.01)
assert server.end() == 0, server.said()
