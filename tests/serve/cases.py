"""Requests over REST and the answers that have to come back: names of cases, requests, codes, and
what holds of the answer."""
import gzip
import json
import math
import struct
import zlib

from server import TYPES, Server

JSON_TYPES = {"BOOL": [True, False], "UINT8": [0, 255], "UINT16": [1, 65535], "UINT32": [2, 2**32 - 1], "UINT64": [3, 2**64 - 1],
              "INT8": [-128, 127], "INT16": [-32768, 5], "INT32": [-2**31, 6], "INT64": [-2**63, 2**63 - 1],
              "FP32": [1.5, -0.25], "FP64": [1e300, 0.1], "BYTES": ["", "gr\u00fc\u00df \U0001f600"]}
BINARY = {t: bytes(range(1, 2 * size + 1)) for t, size in TYPES.items() if size} | {
    "BOOL": b"\1\0", "BYTES": struct.pack("<I3sI", 3, b"\xff\0a", 0)}


def data_of(name, datatype, shape, data):
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


def blob_of(name, datatype, shape, size):
    return {"name": name, "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": size}}


def echo(*rows, **more):
    return dict({"inputs": [data_of("X", "FP32", [len(rows), 4], [v for row in rows for v in row])]}, **more)


def with_blobs(request, *blobs):
    """Body and headers of the binary extension."""
    text = json.dumps(request).encode()
    return text + b"".join(blobs), {"Inference-Header-Content-Length": len(text)}


ROW = [1.0, 2.0, 3.0, 4.0]
FLOATS = struct.pack("<4f", *ROW)
ALL_JSON = {"inputs": [data_of("in_" + t, t, [1, 2], v) for t, v in JSON_TYPES.items()] +
            [blob_of("in_" + t, t, [1, 2], 4) for t in ("FP16", "BF16")],
            "outputs": [{"name": "out_" + t} for t in JSON_TYPES] +
            [{"name": "out_" + t, "parameters": {"binary_data": True}} for t in ("FP16", "BF16")]}
ALL_BINARY = {"inputs": [blob_of("in_" + t, t, [1, 2], len(b)) for t, b in BINARY.items()],
              "parameters": {"binary_data_output": True}}
ECHO_BINARY = {"inputs": [blob_of("X", "FP32", [1, 4], 16)], "parameters": {"binary_data_output": True}}


def error(part=""):
    return lambda a: part.lower() in a.json["error"].lower() and a.headers["content-type"].startswith("application/json")


def has(**what):
    return lambda a: all(a.json[k] == v for k, v in what.items())


def outputs(**values):
    """The data of each output, flat."""
    return lambda a: {o["name"]: o["data"] for o in a.json["outputs"]} == values


def only_binary(data):
    return lambda a: a.binary == data and a.headers["content-type"] == "application/octet-stream" and \
        all("data" not in o for o in a.json["outputs"]) and \
        sum(o["parameters"]["binary_data_size"] for o in a.json["outputs"]) == len(data)


def chunked(body, size=5):
    return b"".join(b"%x;a=b\r\n%s\r\n" % (len(body[i:i + size]), body[i:i + size]) for i in range(0, len(body), size)) + b"0\r\nX: y\r\n\r\n"


def infer(name, model, body, code, holds, headers=None):
    return name, Server.bytes_of("POST", "/v2/models/%s/infer" % model, body, headers), code, holds


def blobs(name, model, request, data, code, holds, **headers):
    body, own = with_blobs(request, *data)
    return infer(name, model, body, code, holds, dict(own, **headers))


def get(path, code, holds, headers=None):
    return "GET " + path, Server.bytes_of("GET", path, None, headers), code, holds


def post(path, body, code, holds=lambda a: True):
    return "POST %s %s" % (path, body), Server.bytes_of("POST", path, body), code, holds


ANSWERED = lambda a: True
TENSOR_KEYS = {"name", "datatype", "shape"}
DURATION = {"count", "ns"}
STAGES = {"success", "fail", "queue", "compute_input", "compute_infer", "compute_output"}


def is_stats(a):
    stats = a.json["model_stats"]
    return stats and all(
        isinstance(s["name"], str) and isinstance(s["version"], str) and
        all(isinstance(s[k], int) for k in ("last_inference", "inference_count", "execution_count")) and
        STAGES <= set(s["inference_stats"]) and all(set(d) == DURATION for d in s["inference_stats"].values()) and
        all(isinstance(b["batch_size"], int) and set(b["compute_infer"]) == DURATION for b in s["batch_stats"]) for s in stats)


def is_trace(a):
    return isinstance(a.json["trace_level"], list) and \
        all(isinstance(a.json[k], str) for k in ("trace_rate", "trace_count", "log_frequency", "trace_file"))


def is_log(a):
    return isinstance(a.json["log_info"], bool) and isinstance(a.json["log_verbose_level"], int) and isinstance(a.json["log_file"], str) and \
        {"log_warning", "log_error", "log_format"} <= set(a.json)


CONTROL = [
    get("/v2/health/live", 200, has(live=True)),
    get("/v2/health/ready", 200, has(ready=True)),
    get("/v2/health/ready?x=1&y", 200, has(ready=True)),
    post("/v2/health/live", {}, 405, error()),
    get("/v2", 200, lambda a: {"name", "version", "extensions"} == set(a.json) and "binary_tensor_data" in a.json["extensions"]),
    get("/v2/nothing", 404, error()),
    get("/", 404, error()),
    get("/v2/models/echo", 200, lambda a: a.json["versions"] == ["1"] and a.json["name"] == "echo" and isinstance(a.json["platform"], str) and
        a.json["inputs"] == [{"name": "X", "datatype": "FP32", "shape": [-1, 4]}] and set(a.json["outputs"][0]) == TENSOR_KEYS),
    get("/v2/models/%65cho", 200, has(name="echo")),
    get("/v2/models/echo/versions/1", 200, has(name="echo")),
    get("/v2/models/many", 200, lambda a: sorted(a.json["versions"], key=int) == ["1", "2", "30"]),
    get("/v2/models/echo/versions/9", 404, error("9")),
    get("/v2/models/echo/versions/x", 404, error()),
    get("/v2/models/none", 404, error("none")),
    get("/v2/models/..%2f..%2fetc", 404, error()),
    get("/v2/models/echo/ready", 200, ANSWERED),
    get("/v2/models/many/versions/30/ready", 200, ANSWERED),
    get("/v2/models/none/ready", 404, error("none")),
    get("/v2/models/echo/config", 200, lambda a: a.json["name"] == "echo" and a.json["max_batch_size"] == 8 and a.json["backend"] == "synthetic" and
        a.json["input"][0]["data_type"] == "TYPE_FP32" and a.json["input"][0]["dims"] == [4]),
    get("/v2/models/none/config", 404, error("none")),
    get("/v2/models/stats", 200, is_stats),
    get("/v2/models/echo/stats", 200, lambda a: is_stats(a) and [s["name"] for s in a.json["model_stats"]] == ["echo"]),
    get("/v2/models/many/versions/2/stats", 200, lambda a: [s["version"] for s in a.json["model_stats"]] == ["2"]),
    get("/v2/models/none/stats", 404, error("none")),
    post("/v2/models/stats", {}, 405, error()),
    post("/v2/repository/index", None, 200, lambda a: {"name": "echo", "version": "1", "state": "READY"}.items() <=
         [m for m in a.json if m["name"] == "echo"][0].items()),
    post("/v2/repository/index", {"ready": True}, 200, lambda a: all(m["state"] == "READY" for m in a.json)),
    post("/v2/repository/index", b"{", 400, error()),
    get("/v2/repository/index", 405, error()),
    get("/v2/trace/setting", 200, is_trace),
    post("/v2/trace/setting", {"trace_rate": "5", "trace_level": ["TIMESTAMPS"]}, 200, lambda a: is_trace(a) and a.json["trace_rate"] == "5"),
    post("/v2/trace/setting", {"trace_rate": None, "trace_level": ["OFF"]}, 200, lambda a: is_trace(a) and a.json["trace_rate"] != "5"),
    post("/v2/trace/setting", {"trace_rate": "often"}, 400, error("often")),
    get("/v2/models/echo/trace/setting", 200, is_trace),
    get("/v2/logging", 200, is_log),
    post("/v2/logging", {"log_verbose_level": 1}, 200, lambda a: is_log(a) and a.json["log_verbose_level"] == 1),
    post("/v2/logging", {"log_verbose_level": 0}, 200, is_log),
    post("/v2/logging", {"log_format": "pretty"}, 400, error()),
    get("/v2/systemsharedmemory/status", 200, lambda a: a.json == []),
    get("/v2/systemsharedmemory/region/none/status", 404, error("none")),
    post("/v2/systemsharedmemory/region/r/register", {"key": "/weir-test-none", "offset": 0, "byte_size": 64}, 400, error("weir-test-none")),
    post("/v2/systemsharedmemory/region/r/register", {"offset": 0, "byte_size": 64}, 400, error("key")),
    post("/v2/systemsharedmemory/region/none/unregister", None, 200),
    post("/v2/systemsharedmemory/unregister", None, 200),
    get("/v2/cudasharedmemory/status", 200, lambda a: a.json == []),
    post("/v2/cudasharedmemory/unregister", None, 200),
    get("/metrics", 200, lambda a: a.headers["content-type"].startswith("text/plain") and b"nv_inference_request_success" in a.body),
    post("/metrics", {}, 405),
]

ANSWERS = [
    infer("one row", "echo", echo(ROW), 200, lambda a: outputs(Y=ROW)(a) and a.json["model_name"] == "echo" and a.json["model_version"] == "1" and
          "id" not in a.json and a.json["outputs"][0]["shape"] == [1, 4] and a.headers["content-type"] == "application/json"),
    infer("three rows, nested", "echo", {"inputs": [data_of("X", "FP32", [3, 4], [ROW, ROW, [0, 1, -2, 3e5]])]}, 200,
          outputs(Y=ROW + ROW + [0, 1, -2, 3e5])),
    infer("an id, and keys that say nothing", "echo", echo(ROW, id="a\u00e9\U0001f600", model_name="echo", more={"x": [1, {}]}), 200,
          has(id="a\u00e9\U0001f600")),
    infer("raw UTF-8 in an id", "echo", json.dumps(echo(ROW, id="\u00e9"), ensure_ascii=False).encode(), 200, has(id="\u00e9")),
    infer("parameters that nobody knows", "echo", echo(ROW, parameters={"a": 1, "triton": 2, "headers": "h", "b": "x", "c": True, "d": 1.5, "priority": 2, "timeout": 60000000}), 200, outputs(Y=ROW)),
    infer("a named output", "echo", echo(ROW, outputs=[{"name": "Y"}]), 200, outputs(Y=ROW)),
    infer("an empty list of outputs", "echo", echo(ROW, outputs=[]), 200, outputs(Y=ROW)),
    infer("one of two outputs", "two", {"inputs": [data_of("A", "INT64", [1, 1], [5]), data_of("B", "INT64", [1, 1], [6])], "outputs": [{"name": "B2"}]},
          200, outputs(B2=[6])),
    infer("inputs in another order", "two", {"inputs": [data_of("B", "INT64", [1, 1], [6]), data_of("A", "INT64", [1, 1], [5])]}, 200, outputs(A2=[5], B2=[6])),
    infer("another shape than the model's", "shaped", {"inputs": [data_of("X", "FP32", [4], ROW)]}, 200,
          lambda a: outputs(Y=ROW)(a) and a.json["outputs"][0]["shape"] == [4]),
    infer("another shape with an open size", "open_shaped", {"inputs": [data_of("X", "FP32", [2, 2, 1], ROW)]}, 200,
          lambda a: outputs(Y=ROW)(a) and a.json["outputs"][0]["shape"] == [2, 2, 1]),
    infer("a model without rows", "flat", {"inputs": [data_of("X", "INT32", [3], [1, 2, 3])]}, 200, outputs(Y=[1, 2, 3])),
    infer("numbers that are no finite ones", "echo", b'{"inputs":[{"name":"X","datatype":"FP32","shape":[1,4],"data":[NaN,Infinity,-Infinity,0]}]}', 200,
          lambda a: math.isinf(a.json["outputs"][0]["data"][1]) and a.json["outputs"][0]["data"][2] < 0),
    infer("null for what is left out", "echo", {"id": None, "parameters": None, "outputs": None, "inputs": [
        dict(data_of("X", "FP32", [1, 4], ROW), parameters=None)]}, 200, lambda a: outputs(Y=ROW)(a) and "id" not in a.json),
    infer("nothing, as KServe sends it", "flat", {"inputs": [dict(blob_of("X", "INT32", [0], 0), data=None)]}, 200, outputs(Y=[])),
    infer("a version", "many/versions/2", echo(ROW), 200, has(model_version="2")),
    infer("the latest version", "many", echo(ROW), 200, has(model_version="30")),
    blobs("all types as JSON", "types", ALL_JSON, [b"abcd", b"efgh"], 200,
          lambda a: {o["name"]: o.get("data") for o in a.json["outputs"]} ==
          {"out_" + t: v for t, v in JSON_TYPES.items()} | {"out_FP16": None, "out_BF16": None} and a.binary == b"abcdefgh"),
    blobs("all types as binary data", "types", ALL_BINARY, BINARY.values(), 200,
          lambda a: only_binary(b"".join(BINARY[t] for t in TYPES))(a) and [o["name"] for o in a.json["outputs"]] == ["out_" + t for t in TYPES]),
    blobs("binary in, JSON out", "echo", {"inputs": ECHO_BINARY["inputs"]}, [FLOATS], 200, outputs(Y=ROW)),
    blobs("binary in, binary out", "echo", ECHO_BINARY, [FLOATS], 200, only_binary(FLOATS)),
    infer("JSON in, binary out", "echo", echo(ROW, parameters={"binary_data_output": True}), 200, only_binary(FLOATS)),
    infer("an output's own wish goes first", "echo", echo(ROW, parameters={"binary_data_output": True}, outputs=[{"name": "Y", "parameters": {"binary_data": False}}]),
          200, outputs(Y=ROW)),
    blobs("JSON and binary inputs mixed", "two", {"inputs": [data_of("A", "INT64", [1, 1], [7]), blob_of("B", "INT64", [1, 1], 8)]}, [struct.pack("<q", -8)],
          200, outputs(A2=[7], B2=[-8])),
    infer("the body is the only input", "echo", FLOATS, 200, only_binary(FLOATS), {"Inference-Header-Content-Length": 0}),
    infer("classes of an output", "labels", {"inputs": [data_of("X", "FP32", [2, 4], [1, 9, 3, 2, 7, 0, 8, 1])], "outputs": [{"name": "Y", "parameters": {"classification": 2}}]},
          200, lambda a: [(c.split(":")[1:]) for c in a.json["outputs"][0]["data"]] == [["1", "bee"], ["2", "cat"], ["2", "cat"], ["0", "ant"]] and
          a.json["outputs"][0]["shape"] == [2, 2] and a.json["outputs"][0]["datatype"] == "BYTES"),
    infer("chunks", "echo", chunked(json.dumps(echo(ROW)).encode()), 200, outputs(Y=ROW), {"Transfer-Encoding": "chunked"}),
    infer("a header in another case", "echo", with_blobs(ECHO_BINARY, FLOATS)[0], 200, only_binary(FLOATS),
          {"inference-header-content-length": len(json.dumps(ECHO_BINARY))}),
    infer("what it waited for", "echo", echo(ROW), 200, lambda a: {"queue", "batch", "device", "total"} ==
          {part.split("=")[0] for part in a.headers["weir-time"].split()}, {"Weir-Time": 1}),
    infer("a deadline far away", "echo", echo(ROW), 200, outputs(Y=ROW), {"Weir-Deadline-Us": 60000000}),
]
for encoding, packed in (("gzip", gzip.compress), ("deflate", zlib.compress)):
    text, own = with_blobs(ECHO_BINARY, FLOATS)
    ANSWERS.append(infer(encoding, "echo", packed(text), 200, only_binary(FLOATS), dict(own, **{"Content-Encoding": encoding})))

X = lambda shape, data, datatype="FP32", name="X": {"inputs": [data_of(name, datatype, shape, data)]}
REFUSALS = [
    infer("no model", "none", echo(ROW), 404, error("none")),
    infer("no version", "echo/versions/7", echo(ROW), 404, error("7")),
    infer("no body", "echo", b"", 400, error()),
    infer("no JSON", "echo", b'{"inputs":', 400, error()),
    infer("a list", "echo", b"[]", 400, error()),
    infer("no inputs", "echo", {}, 400, error("input")),
    infer("too deep", "echo", b'{"a":' + b"[" * 1000 + b"]" * 1000 + b"}", 400, error()),
    infer("an input that the model has not", "echo", {"inputs": [data_of("Z", "FP32", [1, 4], ROW)]}, 400, error("Z")),
    infer("a missing input", "types", {"inputs": []}, 400, error()),
    infer("an input twice", "echo", {"inputs": echo(ROW)["inputs"] * 2}, 400, error("X")),
    infer("another type", "echo", X([1, 4], [1, 2, 3, 4], "INT32"), 400, error("FP32")),
    infer("an unknown type", "echo", X([1, 4], ROW, "FP31"), 400, error("FP31")),
    infer("another width", "echo", X([1, 3], ROW[:3]), 400, error("X")),
    infer("another rank", "echo", X([4], ROW), 400, error("X")),
    infer("more rows than the model takes", "echo", echo(*[ROW] * 9), 400, error("8")),
    infer("a negative shape", "echo", X([-1, 4], ROW), 400, error()),
    infer("a shape that no memory has", "flat", X([2**62], [], "INT32"), 400, error()),
    infer("too few numbers", "echo", X([1, 4], ROW[:3]), 400, error()),
    infer("too many numbers", "echo", X([1, 4], ROW + [5]), 400, error()),
    infer("text as a number", "echo", X([1, 4], ["a", "b", "c", "d"]), 400, error()),
    infer("a number as text", "types", {"inputs": [data_of("in_BYTES", "BYTES", [1, 2], [1, 2])]}, 400, error()),
    infer("a number too large for its type", "flat", X([1], [2**31], "INT32"), 400, error()),
    infer("a half number by JSON", "types", {"inputs": [data_of("in_FP16", "FP16", [1, 2], [1, 2])]}, 400, error("FP16")),
    infer("no data", "echo", {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 4]}]}, 400, error()),
    infer("an output that the model has not", "echo", echo(ROW, outputs=[{"name": "Z"}]), 400, error("Z")),
    infer("a sequence", "echo", echo(ROW, parameters={"sequence_id": 5, "sequence_start": True}), 501, error("sequence")),
    infer("shared memory that nobody registered", "echo", {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 4],
          "parameters": {"shared_memory_region": "gone", "shared_memory_byte_size": 16}}]}, 404, error("gone")),
    blobs("data twice", "echo", {"inputs": [dict(blob_of("X", "FP32", [1, 4], 16), data=ROW)]}, [FLOATS], 400, error()),
    blobs("too little binary data", "echo", ECHO_BINARY, [FLOATS[:15]], 400, error()),
    blobs("too much binary data", "echo", ECHO_BINARY, [FLOATS, b"x"], 400, error()),
    blobs("binary data of another size", "echo", {"inputs": [blob_of("X", "FP32", [1, 4], 12)]}, [FLOATS[:12]], 400, error()),
    blobs("a text longer than its data", "types", {"inputs": [blob_of("in_BYTES", "BYTES", [1, 2], 8)]}, [struct.pack("<II", 99, 0)], 400, error()),
    infer("JSON longer than the body", "echo", echo(ROW), 400, error(), {"Inference-Header-Content-Length": 99999}),
    infer("a length that is no number", "echo", echo(ROW), 400, error(), {"Inference-Header-Content-Length": "x"}),
    infer("a deadline that is over", "slow", X([1, 1], [1]), 429, error(), {"Weir-Deadline-Us": 1}),
    infer("a timeout that is over", "slow", dict(X([1, 1], [1]), parameters={"timeout": 1}), 429, error()),
    *[infer("a reserved parameter", "echo", echo(ROW, parameters={name: True}), 400, error("'%s' is reserved for Triton usage" % name))
      for name in ("triton_", "triton_final_response", "triton_enable_empty_final_response", "triton_nobody_knows")],
    infer("a deadline that is no number", "echo", echo(ROW), 400, error(), {"Weir-Deadline-Us": "soon"}),
    infer("an encoding that nobody knows", "echo", echo(ROW), 501, error("the encoding 'br' is not supported. gzip and deflate are"), {"Content-Encoding": "br"}),
    infer("no gzip", "echo", echo(ROW), 400, error(), {"Content-Encoding": "gzip"}),
    get("/v2/models/echo/infer", 405, error()),
]

# Requests that end the connection, too.
HOSTILE = [
    ("two lengths", b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400),
    ("a length and chunks", b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("a length with a sign", b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n{}", 400),
    ("a folded line", b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400),
    ("a blank before the colon", b"GET /v2 HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n", 400),
    ("no host", b"GET /v2 HTTP/1.1\r\n\r\n", 400),
    ("no HTTP", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
    ("a transfer coding that nobody knows", b"POST /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", (400, 501)),
    ("a chunk with a wrong size", b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ("a huge head", b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 20000 + b"\r\n\r\n", (400, 413, 431)),
    ("a huge body", b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n", 413),
]
