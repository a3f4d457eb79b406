"""The reference lists what the program writes: reference.py BUILD SOURCE WHAT.

WHAT is json (every key of every --json, with its type) or tables (every column).  A key that is
written and not listed is an error, and so is one that is listed and never written; the outputs are
those of many kept and some fresh traces. Then the same is asked of pages with a row less, a row
more and another type, which must be noticed. The pages make docs/reference/weir.schema.json, which
each --json must be valid by (json) and which must be what the pages make (schema; with --update it
is written).
"""
import contextlib
import csv
import glob
import io
import json
import os
import re
import sqlite3
import shutil
import subprocess
import sys
import tempfile
import threading

build, source, what = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
update = "--update" in sys.argv
golden = source + "/tests/golden/"
if not os.path.exists(build + "/lib/weir/sim/libcuda.so.1"):
    print("the simulated driver is not built")
    sys.exit(77)
work = tempfile.TemporaryDirectory(prefix="weir-reference-")
os.chdir(work.name)
os.environ["LD_LIBRARY_PATH"] = build + "/lib/weir/sim"
os.environ["PATH"] = build + "/bin:" + os.environ["PATH"]
complaints = []


def complain(text):
    complaints.append(text)


def run(*command, codes=(0,), **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    if done.returncode not in codes:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.decode()[:400]}")
    return done.stdout.decode()


def weir(*arguments, **more):
    return run("weir", *arguments, **more)


APP = build + "/examples/vecadd"


def record(name, *options, program=(APP,), sim=None, codes=(0,)):
    environment = dict(os.environ, WEIR_SIM=sim) if sim else os.environ
    weir("record", "-q", *options, "-o", name, "--", *program, env=environment, codes=codes)
    return name


def top():
    """Asked until the programs, which may have been held up, have done something in the time that was looked at."""
    for _ in range(40):
        said = weir("top", "--once", "--json", "--interval", "50ms", "--share", "together")
        look = json.loads(said)
        if (all(any(key in p for p in look["programs"]) for key in ("busy", "waiting")) and
                any(m.get("missed") and "mean_batch_rows" in m for m in look["models"])):
            break
    return said


@contextlib.contextmanager
def serving(*options):
    """A server of models that is asked all the time, but at least once with a trace."""
    os.environ.update(WEIR_BUILD=build, WEIR_BIN=build + "/bin/weir", WEIR_SCRATCH=work.name, XDG_RUNTIME_DIR=work.name)
    sys.path.insert(0, source + "/tests/serve")
    sys.dont_write_bytecode = True
    import cases
    from server import Repository, Server
    server = Server(Repository("repository").standard().path, *options)
    server.infer("echo", cases.echo(cases.ROW), {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
    end = threading.Event()

    def ask():
        while not end.is_set():
            for deadline in ("1", "60000000"):
                server.infer("echo", cases.echo(cases.ROW), {"Weir-Deadline-Us": deadline})
    client = threading.Thread(target=ask)
    client.start()
    yield
    end.set()
    client.join()
    server.end()
    del os.environ["XDG_RUNTIME_DIR"]


def live():
    """JSON of programs that run meanwhile."""
    steady = build + "/tests/cli/programs/steady"
    os.mkdir("together", 0o700)
    share = ("weir", "run", "--sim", "--share", "together")
    programs = [subprocess.Popen(command + ("--", steady), stdout=subprocess.PIPE) for command in
                (share + ("--class", "latency", "--memory", "1G"), share, ("weir", "record", "--sim", "-q", "-o", "top.weir"))]
    for program in programs:
        program.stdout.readline()
    shutil.rmtree("weir")  # of an earlier server
    os.symlink("together", "weir")
    with serving():
        said = [("top", top()),
                ("sched", weir("sched", "--share", "together", "--json", "status"))]
    for program in programs:
        program.terminate()
        program.wait()
    return said


def fresh_traces():
    """Each has something that the kept traces have not."""
    nvtx = glob.glob(build + "/tests/hostile/programs/nvtx")
    yield record("plain.weir")
    os.environ["WEIR_SIM_NVML"] = "slow=1-2"
    yield record("states.weir", "--sim", "--nvml=1ms")
    yield record("raw.weir", "--no-pack", "--level=stat")
    yield record("part.weir", "--capture=step:1-2")
    yield record("sampled.weir", "--gpu=sample:8")
    yield record("stacks.weir", "--sim", "--stacks", program=(sys.executable, source + "/tests/cli/programs/leaking.py"))
    yield record("reconstructed.weir", "--gpu=predict:8")
    yield record("first.weir", "--predict", "--history", "app.history")
    yield record("again.weir", "--predict", "--history", "app.history")
    yield record("predicted.weir", "--predict", program=(build + "/tests/cli/programs/predicted", "20"))
    yield record("failing.weir", sim="fault=cuMemFree_v2:1:1", codes=range(256))
    fill = glob.glob(build + "/tests/storm/quota")
    if fill:
        weir("run", "-q", "--sim", "--share", "share", "--memory", "256M", "-o", "refused.weir", "--", *fill, "fill", "64")
        yield "refused.weir"
    with serving("--alone", "-o", "served.weir"):
        pass
    yield "served.weir"
    if nvtx:
        yield record("ranges.weir", program=nvtx + ["spans"], codes=range(256))
    for trace in ("eager.json", "training.json", "ddp-rank0.json.gz", "stacks-modules.json.gz", "fragments.json.gz"):
        name = trace.split(".")[0] + ".weir"
        weir("import", "-q", "-o", name, golden + "kineto/" + trace)
        yield name
    with open("log.csv", "w", encoding="utf-8") as log:
        log.write("action,addr,size,stream\n")
        log.writelines(f"{what},{0x7F0000000000 + i * 4096},4096,0\n" for i in range(40) for what in ("alloc", "free"))
    weir("import", "-q", "-o", "log.weir", "log.csv")
    yield "log.weir"
    run(build + "/tests/gen-trace", "-n", "16000", "-t", "2", "-s", "7", "-p", "generated.weir")
    yield "generated.weir"


def kept_traces():
    yield from sorted(glob.glob(golden + "problems/*.weir"))
    yield from sorted(glob.glob(golden + "readme/*.weir"))


TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def walk(value, path, found):
    found.setdefault(path, set()).add(TYPES.get(type(value), "null"))
    if isinstance(value, dict):
        for key, inner in value.items():
            key = key.replace(".", "·")
            walk(inner, f"{path}.{key}" if path else key, found)
    elif isinstance(value, list):
        for inner in value:
            walk(inner, path + "[]", found)


def json_outputs():
    """Each command's JSON."""
    fresh, kept = list(fresh_traces()), list(kept_traces())
    reduce = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", "pid": 0,
              "tid": 7, "dur": 5, "args": {"device": 0, "stream": 7}}
    with open("rank.json", "w", encoding="utf-8") as file:
        file.write(json.dumps({"traceEvents": [{**reduce, "ts": ts} for ts in (1, 10, 30)]}))
    weir("import", "-q", "-o", "rank.weir", "rank.json")
    yield "report", weir("report", "--json", "--only", "nccl", "rank.weir")
    for trace in fresh + kept[::3]:
        yield "report", weir("report", "--json", trace)
        lists = "gpu_trace,api_trace,operators_by_shape,kernel_shapes,launch_gaps,idle_gaps,kernel_families,busy_over_time,kernels_at_once,"
        lists += "waits,nccl,range_kernels,range_pace,steps,allocation_calls,memory_over_time,requests"
        yield "report", weir("report", "--json", "--only", lists, trace)
    for request in ("98", "17", "7"):
        yield "report", weir("report", "--json", "--request", request, golden + "serve/served.weir", golden + "serve/beside.weir")
    for trace in fresh + kept[::9]:
        yield "memory", weir("memory", "--json", trace)
        yield "hints", weir("hints", "--json", trace)
    for how in ("--replay", "--replay=driver"):
        yield "memory", weir("memory", how, "--json", golden + "problems/leak.weir")
    with open(golden + "kineto/training.json", encoding="utf-8") as training, open("served.json", "w", encoding="utf-8") as served:
        served.write(training.read().replace("ProfilerStep#", "request "))
    slow, fixed = golden + "readme/slow.weir", golden + "readme/fixed.weir"
    gates = ["--fail-on", "errors > 0", "--fail-on", "kernel p50 of * > +5%", "--fail-on", "device_busy > 0"]
    for sides in (
        [slow, fixed],
        ["sampled.weir", "plain.weir"],
        ["eager.weir", "stacks-modules.weir"],
        ["served.json", "served.json"],
        ["training.weir", "training.weir"],
        ["plain.weir", "again.weir", "--", "plain.weir", "failing.weir"],
    ):
        yield "diff", weir("diff", "--json", *gates, *sides, codes=(0, 1))
    for how in ((), ("-r", "2")):
        weir("stat", "--json", *how, "-o", "stat.json", "--", APP)
        with open("stat.json", encoding="utf-8") as file:
            yield "stat", file.read()
    weir("stat", "--json", "-I", "5ms", "-o", "stat.json", "--", APP)
    with open("stat.json", encoding="utf-8") as file:
        for line in file:
            yield "stat", line
    weir("trace", "-c", "--json", "-o", "counts.json", "--", APP)
    with open("counts.json", encoding="utf-8") as file:
        yield "trace", file.read()
    yield "doctor", weir("doctor", "--json", "--sim", codes=(0, 3))
    yield "doctor", weir("doctor", "--json", "--", "/bin/false", codes=(0, 3))
    yield "kernels", weir("kernels", "list", "--json")
    yield "kernels", weir("kernels", "plan", "softmax", "--rows", "64", "--width", "64", "--json")
    yield "kernels", weir("kernels", "plan", "gemm", "--size", "64,64,64", "--json")
    occupancy = ["occupancy", "--json", "--cc", "9.0", "--regs", "64"]
    yield "occupancy", weir(*occupancy, "--dynamic", "100K", "--block", "256", "--scan")
    yield "occupancy", weir(*occupancy, "--regs", "250", "--block", "1024", codes=(0, 1))
    with open("launches.csv", "w", encoding="utf-8") as file:
        file.write(run(build + "/tests/gen-launches", "3000"))
    weir("train", "-o", "launches.weir-model", "launches.csv")
    yield "train", weir("train", "--json", "-o", "auto.weir-model", "launches.csv")
    splits = ["--split", "prequential", "--split", "sibling"]
    yield "eval", weir("eval", "--json", *splits, "launches.weir-model", "launches.csv")
    yield "predict", weir("predict", "--json", "launches.csv")
    launch = ["--kernel", "my_gemm", "--grid", "128", "--block", "256", "--features"]
    yield "predict", weir("predict", "--json", "--device", "H200", *launch)
    record("timed.weir", "--gpu")
    yield "whatif", weir("whatif", "--json", "timed.weir", "timed.weir")
    os.makedirs("models/quick/1")
    os.mkdir("models/.weir")
    with open("models/quick/1/model.onnx", "w", encoding="utf-8"):
        pass
    with open("models/quick/config.pbtxt", "w", encoding="utf-8") as file:
        file.write('platform: "onnxruntime_onnx"\nmax_batch_size: 8\n')
    with open("models/.weir/latency-quick-1", "w", encoding="utf-8") as file:
        file.write("weir-latency 1\nmargin 0.05 deviation 0.02\nrows 1 ns 500000 runs 7\n")
    with open("models/.weir/model-quick-1", "w", encoding="utf-8") as file:
        file.write('{"input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [-1, 1]}], "output": []}')
    yield "whatif", weir("whatif", "--json", "--serve", "models", "--arrivals", "poisson:100", "--seconds", "2")
    yield from live()


def rows_of(page):
    """(command, heading's prefixes, keys, type) of each row of the tables of a page."""
    command, prefixes = None, [""]
    with open(f"{source}/docs/reference/{page}", encoding="utf-8") as file:
        for line in file:
            if line.startswith("#"):
                named = re.search(r"`weir ([a-z]+) --json", line)
                command = named.group(1) if named else command
                prefixes = [p for p in re.findall(r"`([^`]*)`", line) if not p.startswith("weir ")] or [""]
            cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)]
            if line.startswith("| `") and len(cells) > 3:
                yield command, prefixes, re.findall(r"`([^`]*)`", cells[1]), cells[2]


def listed_json():
    listed = {}
    for page in ("json-report.md", "json-memory.md", "json-diff.md", "json-others.md"):
        for command, prefixes, keys, kind in rows_of(page):
            for prefix in prefixes:
                for key in keys:
                    path = f"{prefix}.{key}" if prefix else key
                    if (command, path) in listed:
                        complain(f"{page} lists {path} of weir {command} twice")
                    listed[command, path] = kind
    for command in {command for command, _ in listed}:
        listed.setdefault((command, "schema_version"), "integer")  # said once for all
    return listed


def pattern(path):
    """<name> stands for any one key."""
    return re.compile(re.sub(r"<[a-z_]+>", "[^.]+", re.escape(path).replace(r"\<", "<").replace(r"\>", ">")))


def containers(path):
    """The objects and arrays that a path lies in."""
    return [path[: m.start()] for m in re.finditer(r"\[\]|\.", path) if m.start()] + [
        path[: m.end()] for m in re.finditer(r"\[\](?=\.)", path)
    ]


def allowed(kind):
    words = set(re.findall(r"[a-z]+", kind))
    types = {t for t in ("integer", "number", "string", "boolean", "null", "object", "array") if t in words}
    return types | ({"integer"} if "number" in types else set())


def check_command(command, listed, found):
    """listed is {path: type}, found {path: types}."""
    forms = {path: pattern(path) for path in listed}
    outer = [pattern(c) for c in {c for path in listed for c in containers(path)}]
    seen = set()
    for path, types in sorted(found.items()):
        hits = [p for p, form in forms.items() if form.fullmatch(path)]
        seen.update(hits)
        for p in hits:
            if types - allowed(listed[p]):
                complain(f"{command}: {path} is listed as {listed[p]} and is {' or '.join(sorted(types))}")
        element = path.endswith("[]") and any(
            form.fullmatch(path[:-2]) for p, form in forms.items() if "array" in allowed(listed[p])
        )
        if path and not hits and not element and not any(form.fullmatch(path) for form in outer):
            complain(f"{command}: {path} ({' or '.join(sorted(types))}) is written and not listed")
    for path in sorted(set(listed) - seen):
        complain(f"{command}: {path} is listed and was never written")


def shortened(value):
    """Rows of lists are alike: the first say enough."""
    if isinstance(value, list):
        return [shortened(v) for v in value[:20]]
    return {k: shortened(v) for k, v in value.items()} if isinstance(value, dict) else value


def json_written():
    written = {}
    for command, text in json_outputs():
        value = json.loads(text)
        walk(value, "", written.setdefault(command, {}))
        samples.setdefault(command, []).append(shortened(value))
    return written


SCHEMA = source + "/docs/reference/weir.schema.json"
samples = {}


def node(types=()):
    return {"types": set(types), "keys": {}, "any": None, "items": None}


def inner_of(at, step):
    """The node of a step of a path: a key, <name> for any key, or [] for the rows of an array."""
    if step == "[]":
        at["types"] |= {"array"}
        at["items"] = at["items"] or node()
        return at["items"]
    at["types"] |= {"object"}
    if step.startswith("<"):
        at["any"] = at["any"] or node()
        return at["any"]
    return at["keys"].setdefault(step.replace("·", "."), node())


def add_path(root, path, kind):
    at = root
    for step in re.findall(r"\[\]|<[^>]*>|[^.\[\]<>]+", path):
        at = inner_of(at, step)
    words = kind.split(" of ", 1)
    at["types"] |= allowed(words[0]) | ({"null"} if "null" in kind else set())
    if len(words) > 1:
        inner_of(at, "[]")["types"] |= allowed(words[1])


def schema_of(at, listed):
    types = at["types"] | (set() if listed else {"null"})
    types -= {"integer"} if "number" in types else set()
    made = {"type": sorted(types) if len(types) > 1 else types.pop()} if types else {}
    if at["items"]:
        made["items"] = schema_of(at["items"], True)
    if at["keys"] or at["any"]:
        made["properties"] = {key: schema_of(at["keys"][key], bool(at["keys"][key]["types"] - {"object", "array"}))
                              for key in sorted(at["keys"])}
        made["additionalProperties"] = schema_of(at["any"], True) if at["any"] else False
    return made


def make_schema(listed):
    roots = {}
    for (command, path), kind in listed.items():
        add_path(roots.setdefault(command, node(["object"])), path, kind)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What weir writes with --json: a definition a command. Absent keys are described in the pages beside this file.",
        "$defs": {command: schema_of(roots[command], True) for command in sorted(roots)},
    }


def laid_out(value, indent=""):
    """JSON with what is short on one line."""
    text = json.dumps(value, ensure_ascii=False)
    if len(indent + text) <= 120 or not isinstance(value, dict):
        return text
    inner = indent + " "
    return "{\n" + ",\n".join(f"{inner}{json.dumps(k)}: {laid_out(v, inner)}" for k, v in value.items()) + "\n" + indent + "}"


def schema_text(listed):
    return laid_out(make_schema(listed)) + "\n"


def check_schema(listed, written):
    with open(SCHEMA, encoding="utf-8") as file:
        if file.read() != schema_text(listed):
            complain("docs/reference/weir.schema.json is not what the pages make: tests/docs/reference.py BUILD SOURCE schema --update")


def check_values(schema):
    """Each output against the definition of its command."""
    for command, values in samples.items():
        valid = jsonschema.Draft202012Validator({"$ref": "#/$defs/" + command, "$defs": schema["$defs"]})
        for error in (e for value in values for e in valid.iter_errors(value)):
            complain(f"weir {command} --json is not valid by the schema at {error.json_path}: {error.message[:120]}")
            break


def check_json(listed, written):
    for command in sorted(set(written) | {c for c, _ in listed}):
        mine = {path: kind for (c, path), kind in listed.items() if c == command}
        check_command(f"weir {command} --json", mine, written.get(command, {}))
    check_values(make_schema(listed))


def spoil_json(listed):
    del listed["report", "totals.lost"]
    listed["memory", "no_such_key"] = "integer"
    listed["stat", "totals.calls"] = "string"
    return ["report --json: totals.lost", "memory --json: no_such_key", "stat --json: totals.calls is listed as string",
            "weir report --json is not valid by the schema at $.totals", "weir stat --json is not valid by the schema"]


def spoil_schema(listed):
    listed["stat", "totals.calls"] = "string"
    return ["is not what the pages make"]


def columns_written():
    weir("import", "-q", "-o", "eager.weir", golden + "kineto/eager.json")
    trace = "eager.weir"
    yield "csv", next(csv.reader(io.StringIO(weir("export", "-f", "csv", trace))))
    keys = set()
    for name in (trace, record("gpu.weir", "--gpu")):
        for line in weir("export", "-f", "ndjson", name).splitlines():
            keys.update(json.loads(line))
    yield "ndjson", keys
    yield "dataset", next(csv.reader(io.StringIO(weir("export", "-f", "dataset", trace))))
    weir("export", "-f", "columns", "-o", "trace.columns", trace)
    with open("trace.columns", "rb") as file:
        for block in map(json.loads, iter(file.readline, b"")):
            if "table" in block:
                yield "columns " + block["table"], [name for name, _ in block["columns"]]
            file.seek(block.get("bytes", 0) + block.get("rows", 0) * sum(
                8 if kind == "i64" else 4 for _, kind in block.get("columns", ())), 1)
    weir("export", "-f", "sqlite", "-o", "trace.sqlite", trace)
    base = sqlite3.connect("trace.sqlite")
    for table, sql in base.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view')").fetchall():
        yield "sqlite " + table, [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
        yield "null " + table, re.findall(r"(?<!IS )NULL AS (\w+)", sql)


def listed_tables():
    """Nsight Systems explains the columns of its tables: the page lists those that are NULL here."""
    listed, tables = {}, []
    with open(source + "/docs/reference/tables.md", encoding="utf-8") as file:
        for line in file:
            if line.startswith("#"):
                tables = re.findall(r"`([^`]*)`", line)
            elif line.startswith("| `") and not tables:
                names, columns = (re.findall(r"`([^`]*)`", cell) for cell in line.split("|")[1:3])
                listed.update({"null " + name: columns for name in names})
            elif line.startswith("| `"):
                for table in tables:
                    listed.setdefault(table, []).extend(re.findall(r"`([^`]*)`", line.split("|")[1]))
    return listed


def check_tables(listed, written):
    for table in sorted(set(listed) - set(written)):
        complain(f"{table} is listed and was not written")
    nsight = {"sqlite " + table.partition(" ")[2] for table in listed if table.startswith("null ")}
    for table in sorted(set(listed) | {t for t in written if not t.startswith("null ")} - nsight):
        ours, theirs = set(listed.get(table, ())), set(written.get(table, ()))
        for column in sorted(theirs - ours):
            complain(f"{table}: the column {column} is written and not listed")
        for column in sorted(ours - theirs):
            complain(f"{table}: the column {column} is listed and was not written")


def spoil_tables(listed):
    listed["csv"].remove("pid")
    listed["sqlite calls"].append("no_such_column")
    listed["null NVTX_EVENTS"].remove("category")
    listed["null NO_SUCH_VIEW"] = []
    return ["csv: the column pid", "sqlite calls: the column no_such_column", "null NVTX_EVENTS: the column category",
            "null NO_SUCH_VIEW is listed"]


if what == "json":
    try:
        import jsonschema
    except ImportError:
        print("python3-jsonschema is not installed")
        sys.exit(77)
    listed, written, check, spoil = listed_json(), json_written(), check_json, spoil_json
elif what == "schema":
    listed, written, check, spoil = listed_json(), None, check_schema, spoil_schema
    if update:
        with open(SCHEMA, "w", encoding="utf-8") as file:
            file.write(schema_text(listed))
else:
    listed, written, check, spoil = listed_tables(), dict(columns_written()), check_tables, spoil_tables

check(listed, written)
for text in complaints:
    print("  " + text)
bad = bool(complaints)
complaints.clear()
wanted = spoil(listed)
check(listed, written)
for text in wanted:
    if not any(text in complaint for complaint in complaints):
        print(f"  not noticed in a spoiled page: {text}")
        bad = True
sys.exit(bad)
