"""The output of weir export -f perfetto, read by protoc: perfetto.py BUILD PROTOC [wrong].

Nothing may be unknown to perfetto.proto; every name that is referred to was sent before; slices of a track nest
and end; arrows end at work; ranges that may cross others have tracks of their process, on which they don't; and the sums
are those of weir report.  With `wrong` one byte is changed.
"""
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

build, protoc = sys.argv[1:3]
here = os.path.dirname(os.path.abspath(__file__))
weir = os.path.join(build, "bin", "weir")


def run(*command, data=None):
    return subprocess.run(command, check=True, input=data, stdout=subprocess.PIPE).stdout


def value(text):
    if text[0] == '"':
        return text[1:-1].encode().decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def parse(lines):
    """protoc's text as dictionaries of lists; one line is a field, or opens or closes a message."""
    top = {}
    stack = [top]
    for line in lines:
        line = line.strip()
        if line == "}":
            stack.pop()
        elif line.endswith(" {") and '"' not in line:
            stack[-1].setdefault(line[:-2], []).append({})
            stack.append(stack[-1][line[:-2]][-1])
        else:
            key, _, rest = line.partition(": ")
            assert not key.isdigit(), "protoc does not know field %s: %s" % (key, rest)
            stack[-1].setdefault(key, []).append(value(rest))
        assert not line[:1].isdigit(), "protoc does not know %s" % line
    return top


def one(message, key, otherwise=None):
    return message.get(key, [otherwise])[0]


class Reader:
    def __init__(self):
        self.names = {key: {} for key in ("category", "event", "annotation", "string", "context",
                                          "specification")}
        self.tracks, self.open = {}, {}
        self.slices = self.arrows = 0
        self.counters = {}
        self.spans = []
        self.served, self.flows, self.ran = {}, {}, []
        self.work, self.events, self.submitted, self.gpus = {}, set(), set(), []

    def intern(self, data):
        for kind, entries in data.items():
            for entry in entries:
                iid = one(entry, "iid")
                assert iid not in self.names[kind], "%s %d is sent twice" % (kind, iid)
                self.names[kind][iid] = one(entry, "text") or one(entry, "name") or one(entry, "pid")

    def slice(self, event, now):
        track = one(event, "track")
        assert track in self.tracks, "a slice of track %s, which has no description" % track
        if one(event, "type") == "COUNTER":
            name = one(self.tracks[track], "name")
            assert self.tracks[track].get("counter"), "%s is no counter" % name
            self.counters.setdefault(name, []).append((now, float(one(event, "counter_value"))))
            return
        stack = self.open.setdefault(track, [])
        if one(event, "type") == "END":
            assert stack and stack[-1][0] <= now, "a slice ends that has not begun"
            self.span(track, *stack.pop(), now)
            return
        self.slices += 1
        assert not stack or stack[-1][0] <= now, "a slice begins before the one around it"
        name = one(event, "name") or self.names["event"][one(event, "name_iid")]
        if one(event, "type") == "INSTANT":
            self.span(track, now, name, now)
        else:
            stack.append((now, name))
        for iid in event.get("category_iids", []):
            assert iid in self.names["category"]
        for note in event.get("annotation", []):
            assert one(note, "name") or one(note, "name_iid") in self.names["annotation"]
            assert one(note, "string_iid", 0) in {0} | set(self.names["string"])
        for flow in event.get("flow_ids", []):
            assert flow not in self.flows, "two arrows are number %d" % flow
            self.flows[flow] = {one(note, "name"): one(note, "uint_value") for note in event["annotation"]}["request"]
        for flow in event.get("terminating_flow_ids", []):
            batch = {one(note, "name"): one(note, "uint_value") for note in event["annotation"]}["batch"]
            self.ran.append((self.flows.pop(flow), batch))
        for correlation in event.get("correlation", []):
            self.submitted.update(correlation["submitted"])

    def span(self, track, begin, name, end):
        """For a track of a process that is no thread's: one at a time."""
        track = self.tracks[track]
        parent = self.tracks.get(one(track, "parent"), {})
        if "name" in track and "process" in parent:
            assert not self.open[one(track, "uuid")], "slices of %s lie in each other" % one(track, "name")
            if one(track, "name") in ("requests", "batches"):
                self.served.setdefault(one(track, "name"), []).append((name, end - begin))
                return
            self.spans.append((one(parent["process"][0], "pid"), one(track, "name"), name, end - begin))

    def stage(self, stage):
        event, kind = one(stage, "event"), self.names["specification"][one(stage, "stage_iid")]
        assert event not in self.events, "two pieces of work are number %d" % event
        assert one(stage, "queue_iid") in self.names["specification"]
        assert one(stage, "context") in self.names["context"]
        self.events.add(event)
        name = self.names["event"][one(stage, "name_iid")]
        row = self.work.setdefault((kind, name), [0, 0])
        row[0] += 1
        row[1] += one(stage, "duration")

    def packet(self, packet):
        assert one(packet, "sequence") == 1
        for data in packet.get("interned", []):
            self.intern(data)
        for track in packet.get("track", []):
            parent = one(track, "parent")
            assert parent is None or parent in self.tracks
            self.tracks[one(track, "uuid")] = track
        for event in packet.get("event", []):
            self.slice(event, one(packet, "timestamp"))
        for stage in packet.get("stage", []):
            self.stage(stage)
        for gpus in packet.get("gpus", []):
            self.gpus += [one(g, "name") for g in gpus.get("gpu", [])]


def crossing(name, trace):
    """Ranges that don't nest, as the database has them."""
    path = name + ".sqlite"
    run(weir, "export", "-f", "sqlite", "-o", path, trace)
    db = sqlite3.connect(path)
    return sorted(db.execute("SELECT pid, kind, COALESCE(value, '(no name)'), end - start FROM ranges LEFT JOIN StringIds "
                             "ON StringIds.id = nameId WHERE kind NOT IN ('operator', 'annotation', 'nvtx', 'python')"))


def spans():
    """Some that cross, in two threads and two processes, one begins where another ends, and marks."""
    rows = [(1, 1, "one", 0, 10), (1, 1, "two", 5, 10), (1, 2, "three", 7, 1), (1, 2, "four", 10, 5), (1, 1, "mark", 6, 0),
            (1, 2, "mark", 10, 0), (2, 1, "one", 3, 10), (2, 1, "two", 4, 20)]
    return {"traceEvents": [{"ph": "X", "cat": "nvtx_span", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
                             "args": {}} for pid, tid, name, ts, dur in rows]}


def check(name, trace):
    path = name + ".perfetto"
    run(weir, "export", "-f", "perfetto", "-o", path, trace)
    with open(path, "rb") as f:
        data = bytearray(f.read())
    if sys.argv[3:]:
        data[len(data) // 2] ^= 0x40
    text = run(protoc, "--decode=Trace", "-I", here, os.path.join(here, "perfetto.proto"), data=bytes(data))
    reader = Reader()
    packets = parse(text.decode().splitlines())["packet"]
    for packet in packets:
        reader.packet(packet)
    report = json.loads(run(weir, "report", "--json", trace))
    assert not any(reader.open.values()), "slices that never end"
    work = sorted((w["kind"], w["name"], w["count"], w["device_total_ns"]) for w in report["device_activities"]
                  if w["kind"] not in ("sync", "span"))
    assert work == sorted((kind, name, *row) for (kind, name), row in reader.work.items()), reader.work
    assert reader.submitted <= reader.events, "arrows that end nowhere"
    assert sorted(reader.spans) == crossing(name, trace), (reader.spans, crossing(name, trace))
    rows = run(weir, "export", "-f", "ndjson", trace).decode().splitlines()
    calls = sum(json.loads(row).get("api") in ("driver", "runtime") for row in rows)
    ranges = sum(o["count"] for o in report["operators"])
    assert reader.slices >= calls + ranges, (reader.slices, calls, ranges)
    assert reader.gpus == [d["name"] for d in report["devices"] if d["name"]], reader.gpus
    assert not reader.flows, "arrows of requests that end at no batch"
    requests = json.loads(run(weir, "report", "--json", "--only", "requests", trace))["requests"]
    assert sorted(reader.ran) == sorted((q["id"], q["batch"]) for q in requests if q["batch"])
    assert sorted(reader.served.get("requests", [])) == sorted((q["model"] or "unknown model", q["total_ns"]) for q in requests)
    print("%s: %d packets, %d slices, %d pieces of work, %d arrows" %
          (name, len(packets), reader.slices, len(reader.events), len(reader.submitted)))
    return reader.counters


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    run(weir, "import", "-q", "-o", "eager.weir", os.path.join(here, "kineto", "eager.json"))
    run(weir, "import", "-q", "-o", "kinds.weir", os.path.join(here, "variants", "torch-2.json"))
    run(os.path.join(build, "tests", "gen-trace"), "-n", "3000", "-t", "2", "-s", "7", "-p", "calls.weir")
    with open("spans.json", "w") as f:
        f.write(json.dumps(spans()))
    run(weir, "import", "-q", "-o", "spans.weir", "spans.json")
    for kind in ("eager", "kinds", "spans", "calls"):
        check(kind, kind + ".weir")
    check("served", os.path.join(here, "serve", "served.weir"))
    # Slow in the second and third sample: NVML's simulation says so.
    if os.path.exists(os.path.join(build, "lib", "weir", "sim", "libnvidia-ml.so.1")):
        run("env", "WEIR_SIM_NVML=slow=1-2", weir, "record", "--sim", "-q", "--nvml=1ms", "-o", "states.weir", "--",
            os.path.join(build, "examples", "vecadd"))
        counters = check("states", "states.weir")
        state = json.loads(run(weir, "report", "--json", "states.weir"))["gpu_state"]["gpus"][0]
        for name, key in (("SM clock", "sm_clock_mhz"), ("memory used", "memory_used_bytes"), ("power", "power_w")):
            values = sorted(v for _, v in counters["GPU 0 " + name])
            assert len(values) == state["samples"], name
            assert [values[0], values[-1]] == [state[key]["min"], state[key]["max"]], (name, values)
        assert sorted(counters["GPU 0 SM clock"])[1][1] == 1200
