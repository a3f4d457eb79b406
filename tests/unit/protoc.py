"""Compares the codec of control messages with protoc, message by message of api/infer.tbl.

    protoc.py BUILD SOURCE

Makes messages at random, has protoc write their bytes, and expects the JSON that they stand for and
the same bytes from that JSON.
"""
import base64
import json
import random
import re
import subprocess
import sys

build, source = sys.argv[1:]
ROUNDS = 3

messages, enums, packages, plain = {}, {}, {}, set()
for line in open(source + "/api/infer.tbl"):
    word = line.split("#")[0].split()
    if not word:
        continue
    if word[0] == "package":
        package = word[1]
    elif word[0] in ("message", "enum"):
        rows = (messages if word[0] == "message" else enums).setdefault(word[1], [])
        packages[word[1]] = package
        plain.update(word[1:2] if "plain" in word[2:] else [])
    else:
        rows.append(word)

RANGES = {"int32": (-2**31, 2**31 - 1), "int64": (-2**63, 2**63 - 1), "uint32": (0, 2**32 - 1),
          "uint64": (0, 2**63 - 1)}


class Maker:
    """A value's text for protoc and its JSON; `lossy` once the JSON does not say which field it was."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lossy = False

    def scalar(self, kind, depth):
        r = self.random
        if kind in messages:
            text, value = self.message(kind, depth + 1)
            return "{ %s }" % text, value
        if kind in enums:
            name = r.choice(enums[kind])[0]
            return name, name
        if kind == "bool":
            value = r.random() < .5
            return str(value).lower(), value
        if kind in RANGES:
            low, high = RANGES[kind]
            value = r.choice([low, high, 0, 1, 127, 128, r.randint(low, high)])
            return str(value), value
        if kind in ("float", "double"):
            value = r.randint(-4000, 4000) / 8
            return repr(value), value
        data = r.choice([b"", b"a", "ü€𝄞".encode(), b"x" * 130, b'"\\\n\x00\x01'])
        if kind == "bytes":
            data = bytes(r.randrange(256) for _ in range(r.choice([0, 1, 2, 3, 200])))
        text = '"%s"' % "".join("\\%03o" % c for c in data)
        return text, base64.b64encode(data).decode() if kind == "bytes" else data.decode()

    def field(self, row, depth):
        name, kind, label = row[0], row[2], row[3] if len(row) > 3 else ""
        r = self.random
        if label == "map":
            keys = sorted(r.sample(["", "a", "key.b", "ü"], r.randint(0, 3)), key=str.encode) \
                if row[4] == "string" else sorted(r.sample([0, 1, 2, 300], r.randint(0, 3)))
            pairs = [(k, self.scalar(kind, depth)) for k in keys]
            text = " ".join("%s { key: %s value: %s }" % (name, '"%s"' % k if row[4] == "string" else k, t)
                            for k, (t, _) in pairs)
            return text, {str(k): v for k, (_, v) in pairs} if pairs else None
        if label == "repeated":
            items = [self.scalar(kind, depth) for _ in range(r.randint(0, 3))]
            return " ".join("%s: %s" % (name, t) for t, _ in items), [v for _, v in items] or None
        text, value = self.scalar(kind, depth)
        default = kind not in messages and label != "oneof" and \
            (value in (0, "", False) or (kind in enums and dict(r2[:2] for r2 in enums[kind])[value] == "0"))
        return "%s: %s" % (name, text), None if default else value

    def message(self, kind, depth=0):
        rows = [row for row in messages[kind] if self.random.random() < .8 and depth < 6]
        chosen = {}
        for row in rows:
            if len(row) > 3 and row[3] == "oneof":
                chosen.setdefault(row[4], []).append(row)
        for group in chosen.values():
            for row in set(map(tuple, group)) - {tuple(self.random.choice(group))}:
                rows.remove(list(row))
        text, value = [], {}
        for row in rows:
            part, json_value = self.field(row, depth)
            text.append(part)
            if json_value is not None:
                value[row[0]] = json_value
                self.lossy |= row[0] in ("bytes_param", "uint64_param")
        if kind in plain:
            value = next(iter(value.values()), None)
        return " ".join(text), value


def run(data, *command):
    done = subprocess.run(command, input=data, capture_output=True)
    if done.returncode:
        sys.exit("%s: %s\n%s" % (" ".join(command), done.stderr.decode(), data))
    return done.stdout


compared = 0
program = build + "/tests/wire-message"
for name in messages:
    proto = "health.proto" if packages[name] == "grpc.health.v1" else "inference.proto"
    for seed in range(ROUNDS if messages[name] else 1):
        maker = Maker("%s %d" % (name, seed))
        text, value = maker.message(name)
        data = run(text.encode(), "protoc", "-I" + build + "/gen", "--deterministic_output",
                   "--encode=%s.%s" % (packages[name], name), proto)
        read = json.loads(run(data, program, "read", name))
        if read != value:
            sys.exit("%s, seed %d: read\n%s\nexpected\n%s" % (name, seed, read, value))
        if not maker.lossy:
            ours = run(json.dumps(value).encode(), program, "put", name)
            if ours != data:
                sys.exit("%s, seed %d: wrote\n%s\nprotoc\n%s\nof %s" % (name, seed, ours, data, value))
            compared += 1
if compared < 2 * len(messages):
    sys.exit("only %d messages were compared" % compared)
print("%d messages of %d types are those of protoc" % (compared, len(messages)))
