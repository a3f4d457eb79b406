"""Records what is kept here anew: record.py BUILD.

served.weir is a server of two models of one kernel each on the simulated driver, which is asked a few times, and
beside.weir a training that shares its device meanwhile.  Afterwards: tests/golden/golden.sh BUILD --update.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

here = pathlib.Path(__file__).resolve().parent
build = pathlib.Path(sys.argv[1]).resolve()
work = pathlib.Path("/tmp/weir")  # traces have the paths of programs: there they say nothing of this machine
work.mkdir()
for part in ("bin", "lib", "examples"):
    shutil.copytree(build / part, work / part)
os.chdir(work)
os.environ.update(WEIR_BUILD=str(work), WEIR_BIN="bin/weir", WEIR_SCRATCH=str(work), XDG_RUNTIME_DIR=str(work),
                  WEIR_SIM="gpu=%s/gpu,time=real,speed=0.1" % work)
sys.path.insert(0, str(here.parent.parent / "serve"))
sys.dont_write_bytecode = True
import cases
from server import WEIR, Repository, Server
from test_requests import add_kernels

repository = Repository("repository")
add_kernels(repository, "small", 4000)
add_kernels(repository, "large", 400000)
server = Server("repository", "--sim", "-o", "served.weir")


def ask(model, **headers):
    server.infer(model, cases.echo(cases.ROW), {name.replace("_", "-"): value for name, value in headers.items()})


def burst(models):
    """All are there before the first is answered."""
    connections = [server.connect() for _ in models]
    for connection, model in zip(connections, models):
        connection.sendall(server.bytes_of("POST", "/v2/models/%s/infer" % model, cases.echo(cases.ROW), {"Weir-Deadline-Us": "2000000"}))
    for connection in connections:
        server.receive(connection)
        connection.close()


for model in ("small", "large") * 3:
    ask(model)
ask("small", Weir_Deadline_Us="1")
ask("nobody")
ask("small", traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
burst(["large", "small"] * 4)
with subprocess.Popen([WEIR, "record", "--sim", "--gpu", "-o", "beside.weir", "--", "examples/batches"],
                      stdout=subprocess.DEVNULL) as training:
    while training.poll() is None:
        ask("small")
        ask("large")
        time.sleep(.01)
assert server.end() == 0, server.said()
for trace in ("served.weir", "beside.weir"):
    shutil.copy(trace, here)
shutil.rmtree(work)
