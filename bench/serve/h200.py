"""weir serve on a GPU, beside what people use: h200.py BUILD RESULT.json [PART...]

Parts: right (answers against PyTorch eager), graphs (host time of a request), goodput (three models, policies of weir serve
and Triton's delay), tight (the same with short deadlines), python (PyTorch compiled, behind asyncio), cold (models of twice the memory), neighbours (a training
beside the server), together (four models in one server against four processes), compiled (AOTInductor's models
beside ONNX Runtime's).  Needs PyTorch, torchvision and ONNX Runtime's CUDA provider beside BUILD/lib/weir/libonnxruntime.so.1.
A part that fails leaves its words in the result.
"""
import asyncio
import http.client
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import rig

SECONDS = 3
KINDS = {"FP16": "float16", "FP32": "float32", "INT64": "int64"}
WORK = pathlib.Path(tempfile.mkdtemp(prefix="weir-h200."))


def parts_of(repository, *names):
    """A repository of some of another one's models."""
    to = pathlib.Path(tempfile.mkdtemp(dir=WORK))
    for name in names:
        shutil.copytree(repository / name, to / name)
    return to


class Server(rig.Server):
    def __init__(self, build, repository, *options, command=None):
        super().__init__(build, repository, *options, command=command)
        self.wait()
        self.http = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, path):
        self.http.request("GET", path)
        return json.loads(self.http.getresponse().read())

    def infer(self, model, x):
        """A tensor of PyTorch in; a tensor and how long it took."""
        import torch
        kind = {torch.float16: "FP16", torch.float32: "FP32", torch.int64: "INT64"}[x.dtype]
        data = x.cpu().numpy().tobytes()
        head = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [
            {"name": "x", "datatype": kind, "shape": list(x.shape), "parameters": {"binary_data_size": len(data)}}]}).encode()
        began = time.perf_counter()
        self.http.request("POST", "/v2/models/%s/infer" % model, head + data, {"Inference-Header-Content-Length": str(len(head))})
        answer = self.http.getresponse()
        body = answer.read()
        took = time.perf_counter() - began
        if answer.status != 200:
            raise RuntimeError(body.decode(errors="replace"))
        size = int(answer.headers["Inference-Header-Content-Length"])
        out = json.loads(body[:size])["outputs"][0]
        return torch.frombuffer(bytearray(body[size:]), dtype=getattr(torch, KINDS[out["datatype"]])).reshape(out["shape"]), took

    def stats(self):
        return {s["name"]: s for s in self.get("/v2/models/stats")["model_stats"]}


def load(o, server, *options, seconds=SECONDS, warm=1):
    return rig.load(o.build, server, *options, "--seconds", str(seconds), "--warm", str(warm), "--behind", "0.02")


def closed(o, server, model, clients, seconds=SECONDS):
    return load(o, server, "--model", model, "--arrivals", "closed:%d" % clients, seconds=seconds)["run"]


def short(run):
    return {k: run[k] for k in ("answered_per_s", "p50_us", "p99_us", "late_share", "void") if k in run}


def right(o):
    """Rows in any order and number, so that each plan runs after each other one."""
    import networks
    import torch
    found, order = {}, [1, 3, 16, 2, 1, 8, 16, 5, 1, 2, 4, 1]
    with Running(o, o.repository) as server:
        for name, (*_, limit) in networks.NETWORKS.items():
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
            model, exact, errors, own = networks.network(name), networks.network(name).float(), [], []
            for seed, rows in enumerate(order):
                x = networks.inputs(name, rows, seed)
                with torch.no_grad():
                    want, precise = model(x).float().cpu(), exact(x.float() if x.is_floating_point() else x).cpu()
                got = server.infer(name, x)[0].float()
                errors.append([float((got - of).abs().max() / of.abs().max()) for of in (want, precise)])
                own.append(float((want - precise).abs().max() / precise.abs().max()))
            found[name] = {"of_eager": max(e[0] for e in errors), "of_fp32": max(e[1] for e in errors), "eager_of_fp32": max(own), "asked": limit}
            del model, exact
        for name, stats in server.stats().items():
            found[name].update(replays=stats["weir_graph_replays"], no_graphs=stats.get("weir_no_graphs"), memory=stats["memory_usage"])
    torch.cuda.empty_cache()
    return found


class Running:
    """A server for a while."""

    def __init__(self, o, repository, *options, command=None):
        self.server = Server(o.build, repository, *options, command=command)

    def __enter__(self):
        return self.server

    def __exit__(self, failed, *_):
        if failed:
            self.server.log.seek(0)
            print(self.server.log.read()[-3000:], flush=True)
        self.server.end()


def graphs(o):
    rows = {}
    for name in ("resnet50", "encoder", "ocr", "mlp"):
        for kind in ("graph", "plain") * 2:
            repository = parts_of(o.repository, name)
            if kind == "plain":
                config = repository / name / "config.pbtxt"
                config.write_text(config.read_text().replace('"graphs" value { string_value: "1"', '"graphs" value { string_value: "0"'))
            with Running(o, repository, "--alone") as server:
                closed(o, server, name, 1, 1)
                before = rig.cpu_us(server.pid)
                run = closed(o, server, name, 1, 2)
                cpu = (rig.cpu_us(server.pid) - before) / (run["answered_per_s"] * (run["seconds"] + 1))
                rows.setdefault(name, {}).setdefault(kind, []).append({"cpu_us": cpu, "p50_us": run["p50_us"], "p99_us": run["p99_us"]})
    return rows


def rates(o, deadlines, policies):
    """The encoder has most requests: images of all would be more than one generator sends.  A twentieth is for the way."""
    shares, found = {"resnet50": 20, "encoder": 60, "ocr": 20}, {}
    options = [w for n, us in deadlines.items() for w in ("--model", "%s,share=%d,deadline=%d,ask=%d" % (n, shares[n], us, us - us // 20))]
    repository = parts_of(o.repository, *deadlines)
    for policy in policies:
        name, _, delay = policy.partition(":")
        with Running(o, repository, "--policy=" + name, *(["--delay=" + delay] if delay else [])) as server:
            load(o, server, *options, "--arrivals", "poisson:400", seconds=1)
            run = load(o, server, *options, "--arrivals", "poisson:2400", "--find-rate", "99", "--precision", ".04", seconds=2, warm=.5)
            probes = [{k: p[k] for k in ("rate", "due", "met", "late", "shed", "refused", "failed", "behind", "void")} for p in run["probes"]]
            found.setdefault(policy, []).append({**run["rates"][0], "probes": probes})
    return found


def goodput(o):
    import networks
    return rates(o, {n: networks.NETWORKS[n][3] for n in ("resnet50", "encoder", "ocr")},
                 ("slack", "delay:0", "delay:1ms", "delay:2ms", "slack", "delay:0"))


def tight(o):
    """The same with deadlines of ten times what one row takes."""
    names = ("resnet50", "encoder", "ocr")
    with Running(o, parts_of(o.repository, *names)) as server:
        deadlines = {n: round(10 * closed(o, server, n, 1, 1)["p50_us"]) for n in names}
    return {"deadlines_us": deadlines, **rates(o, deadlines, ("slack", "delay:0", "delay:500us", "slack", "delay:0", "delay:1ms"))}


def python(o):
    """The rate at which 99 of 100 single rows are answered in 25 ms."""
    found, wanted = {}, ["--model", "resnet50,deadline=25000", "--arrivals", "poisson:100", "--find-rate", "99", "--precision", ".06"]
    with Running(o, parts_of(o.repository, "resnet50")) as server:
        metadata = server.get("/v2/models/resnet50")
        found["weir"] = load(o, server, *wanted, seconds=2, warm=.5)["rates"][0]
    port = rig.free_port()
    (WORK / "metadata.json").write_text(json.dumps(metadata))
    other = subprocess.Popen([sys.executable, __file__, "asyncio", str(port), str(WORK / "metadata.json")])
    server = rig.Server.__new__(rig.Server)
    server.port, server.process, server.log = port, other, tempfile.TemporaryFile("w+")
    try:
        found["asyncio"] = load(o, server.wait(), *wanted, seconds=2, warm=.5)["rates"][0]
    finally:
        other.terminate()
        other.wait()
    return found


def cold(o):
    import networks
    names = ["m%d" % i for i in range(6)]
    found = {"models": len(names), "answers": []}
    repository = pathlib.Path(tempfile.mkdtemp(dir=WORK))
    for name in names:
        shutil.copytree(o.repository / "encoder", repository / name)
    x = networks.inputs("encoder", 1)
    with Running(o, repository) as server:
        for name in names:
            server.infer(name, x)
        each = max(s["memory_usage"][0]["byte_size"] for s in server.stats().values())
    with Running(o, repository, "--memory=%d" % (each * len(names) // 2)) as server:
        found["bytes"] = each
        for turn in range(4):
            for name in names:
                before = server.stats()[name]["weir_cold_loads"]
                first = server.infer(name, x)[1]
                came = server.stats()[name]["weir_cold_loads"] - before
                warm = statistics.median(server.infer(name, x)[1] for _ in range(3))
                found["answers"].append({"turn": turn, "cold": came, "first_ms": first * 1e3, "warm_ms": warm * 1e3})
    late = [a["first_ms"] - a["warm_ms"] for a in found["answers"] if a["cold"] and a["turn"]]
    found["median_extra_ms"] = statistics.median(late) if late else None
    found["largest_extra_ms"] = max(late, default=None)
    found["asked_ms"] = each / 45e9 * 1e3 + 5
    return found


class Training:
    """ResNet-50 training in another process, which tells when each step ends."""

    def __init__(self, *words):
        self.ends, self.process = [], subprocess.Popen([*words, sys.executable, __file__, "train"], stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=lambda: self.ends.extend(map(float, iter(self.process.stdout.readline, ""))))
        self.reader.start()

    def __enter__(self):
        while len(self.ends) < 100 and self.process.poll() is None:
            time.sleep(.1)
        return self

    def rate(self, seconds):
        """Steps a second from now on."""
        began = time.time()
        time.sleep(seconds)
        ends = [e for e in list(self.ends) if e >= began]
        return (len(ends) - 1) / (ends[-1] - ends[0])

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.reader.join()


def neighbours(o):
    """The host's speed drifts by more than a tenth in seconds, so that loads and pauses take turns."""
    found, rate = {"rounds": []}, ["--arrivals", "poisson:150"]
    models = ["--model", "resnet50,share=50,deadline=25000", "--model", "encoder,share=50,deadline=40000"]
    repository = parts_of(o.repository, "resnet50", "encoder")
    run = [o.build + "/bin/weir", "run", "--class", "best-effort", "--"]
    found["train_alone"], found["train_alone_under_run"] = [], []
    for words, key in (([], "train_alone"), (run, "train_alone_under_run")) * 2:
        with Training(*words) as training:
            found[key].append(training.rate(4))
    with Running(o, repository) as server:
        found["alone"] = short(load(o, server, *models, *rate, seconds=5)["run"])
        with Training(*run) as training:
            for _ in range(4):
                idle, beside = [training.rate(2.5)], {}
                asks = threading.Thread(target=lambda: beside.update(short(load(o, server, *models, *rate, seconds=3)["run"])))
                asks.start()
                time.sleep(1.3)
                steps = training.rate(2.5)
                asks.join()
                time.sleep(1.5)
                idle.append(training.rate(2.5))
                found["rounds"].append({"train_idle": idle, "train_beside": steps, "beside": beside})
            found["status"] = json.loads(subprocess.run([o.build + "/bin/weir", "sched", "--json", "status"], stdout=subprocess.PIPE, text=True).stdout)
    found["train_beside_of_idle"] = statistics.median(r["train_beside"] / statistics.mean(r["train_idle"]) for r in found["rounds"])
    found["p99_of_alone"] = statistics.median(r["beside"]["p99_us"] for r in found["rounds"]) / found["alone"]["p99_us"]
    return found


def together(o):
    names = ("resnet50", "encoder", "ocr", "resnet50_fp32")
    found = {}

    def ask(server, name, to):
        to[name] = short(closed(o, server, name, 4, 4))

    for kind in ("processes", "together"):
        for n in (2, 4):
            some, answers = names[:n], {}
            repositories = [parts_of(o.repository, *some)] if kind == "together" else [parts_of(o.repository, name) for name in some]
            servers = [Server(o.build, r, "--alone") for r in repositories]
            threads = [threading.Thread(target=ask, args=(servers[i % len(servers)], name, answers)) for i, name in enumerate(some)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            for server in servers:
                server.end()
            found["%s %d" % (kind, n)] = answers
    return found


def compiled(o):
    """Networks that AOTInductor compiled: the error of the answers, and rate and median beside ONNX Runtime's."""
    import networks
    module = WORK / "compiled.py"
    module.write_text("import networks\n" + "".join(
        "def %s():\n    return networks.network('%s')\n" % (n, n) for n in networks.NETWORKS))
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([o.build + "/lib/weir/python", str(WORK), os.path.dirname(os.path.abspath(__file__))]))
    found, repositories, began, exports = {}, {}, time.time(), []
    for name, way in (("mlp", "alone"), ("ocr", "alone"), ("encoder", "alone"), ("resnet50", "libtorch")):
        _, dtype, shape, *_ = networks.NETWORKS[name]
        kind = "int64" if name == "encoder" else str(dtype).rpartition(".")[2]
        words = [sys.executable, "-m", "weir", "export-torch", str(WORK / way), "compiled:" + name, "--max-batch", "16",
                 "--input", "x=%s:%s" % (kind, ",".join(map(str, shape)))] + ["--libtorch"] * (way == "libtorch")
        said = open(WORK / ("export-" + name), "w+")
        exports.append((name, way, said, subprocess.Popen(words, env=environment, stdout=said, stderr=said)))
    for name, way, said, process in exports:
        try:
            process.wait(max(1, began + 200 - time.time()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        said.seek(0)
        found[name] = {"export_s": round(time.time() - began, 1), "said": said.read()[-700:]}
        if process.returncode:
            shutil.rmtree(WORK / way / name, ignore_errors=True)
        else:
            repositories.setdefault(way, []).append(name)
        print(name, found[name], flush=True)
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    libraries = os.path.join(os.path.dirname(torch.__file__), "lib")
    for way, names in repositories.items():
        try:
            with Running(o, WORK / way, *(["--torch"] if way == "alone" else ["--libtorch", libraries])) as server:
                for name in names:
                    model, errors = networks.network(name), []
                    for seed, rows in enumerate([1, 3, 16, 2, 1, 8, 16, 5, 1]):
                        x = networks.inputs(name, rows, seed)
                        with torch.no_grad():
                            want = model(x).float().cpu()
                        got = server.infer(name, x)[0].float()
                        errors.append(float((got - want).abs().max() / want.abs().max()))
                    found[name].update(of_eager=max(errors), one=short(closed(o, server, name, 1, 1)), many=short(closed(o, server, name, 16, 2)))
                    del model
                for name, stats in server.stats().items():
                    found[name].update(replays=stats.get("weir_graph_replays"), no_graphs=stats.get("weir_no_graphs"), memory=stats["memory_usage"])
        except (Exception, SystemExit):
            found[way + " failed"] = traceback.format_exc()[-2500:]
    with Running(o, parts_of(o.repository, *[n for names in repositories.values() for n in names])) as server:
        for names in repositories.values():
            for name in names:
                found[name].update(onnx_one=short(closed(o, server, name, 1, 1)), onnx_many=short(closed(o, server, name, 16, 2)))
    return found


def train_main():
    import torch
    import torchvision
    model = torchvision.models.resnet50(weights=None).cuda().to(memory_format=torch.channels_last)
    rule = torch.optim.SGD(model.parameters(), lr=.01)
    x = torch.randn(64, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (64,), device="cuda")
    while True:
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        rule.step()
        rule.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        print("%.6f" % time.time(), flush=True)


def asyncio_main(port, metadata):
    """People write this first: a compiled model that runs one request at a time."""
    import networks
    import torch
    torch.set_grad_enabled(False)
    model = torch.compile(networks.network("resnet50"), mode="reduce-overhead")
    for _ in range(4):
        model(networks.inputs("resnet50", 1)).cpu()
    said = pathlib.Path(metadata).read_bytes()

    def run(data):
        return model(torch.frombuffer(data, dtype=torch.float16).reshape(1, 3, 224, 224).cuda()).cpu().numpy().tobytes()

    for _ in range(4):
        run(bytearray(2 * 3 * 224 * 224))

    async def client(reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                fields = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:])}
                body, extra = said, ""
                if head.startswith("POST"):
                    data = await reader.readexactly(int(fields["content-length"]))
                    at = int(fields["inference-header-content-length"])
                    out = run(bytearray(data[at:]))
                    first = json.dumps({"outputs": [{"name": "y", "datatype": "FP16", "shape": [1, 1000], "parameters": {"binary_data_size": len(out)}}]})
                    body, extra = first.encode() + out, "Inference-Header-Content-Length: %d\r\n" % len(first)
                writer.write(("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n" % (extra, len(body))).encode() + body)
        except asyncio.IncompleteReadError:
            writer.close()

    async def serve():
        async with await asyncio.start_server(client, "127.0.0.1", int(port), limit=1 << 20) as server:
            await server.serve_forever()
    asyncio.run(serve())


class Options:
    pass


def main():
    if sys.argv[1] == "train":
        return train_main()
    if sys.argv[1] == "asyncio":
        return asyncio_main(sys.argv[2], sys.argv[3])
    import networks
    o, found = Options(), {}
    o.build, result = sys.argv[1:3]
    wanted = sys.argv[3:] or ["right", "graphs", "cold", "goodput", "neighbours", "python", "together", "compiled"]
    o.repository = WORK / "all"
    try:
        found["device"] = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], stdout=subprocess.PIPE, text=True).stdout.strip()
        for name in networks.NETWORKS:
            networks.export(name, o.repository)
        for name in wanted:
            began = time.time()
            try:
                found[name] = globals()[name](o)
            except (Exception, SystemExit):
                found[name] = {"failed": traceback.format_exc()[-2500:]}
            found[name + "_s"] = round(time.time() - began, 1)
            pathlib.Path(result).write_text(json.dumps(found, indent=1))
            print(name, json.dumps(found[name])[:1500], flush=True)
    finally:
        shutil.rmtree(WORK, ignore_errors=True)


if __name__ == "__main__":
    main()
