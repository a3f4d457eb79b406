"""The parts that invariants.py needs: traces, as the commands see them, and the list of what must
be true of each."""
import gc
import glob
import gzip
import json
import os
import subprocess
from functools import cached_property

gc.disable()  # traces have no circles, and looking for some took two fifths of this program's time

HERE = os.path.dirname(os.path.abspath(__file__))
INVARIANTS = []


def invariant(spoil):
    def register(check):
        INVARIANTS.append((check.__name__, check, spoil))
        return check
    return register


# Traces.


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return json.load(file)


class Trace:
    def __init__(self, weir, path, work):
        self.command, self.path, self.work = weir, path, work
        self.name = os.path.basename(path)

    def run(self, *command):
        done = subprocess.run([self.command, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            raise RuntimeError("weir %s: exit %d: %s" % (" ".join(command), done.returncode, done.stderr.decode()[-300:]))
        self.said = done.stderr.decode()
        return done.stdout

    def file(self, suffix):
        return os.path.join(self.work, self.name + suffix)

    @cached_property
    def source(self):
        if self.path.endswith(".weir"):
            return None
        source = load(self.path)
        return source if isinstance(source, dict) else {"traceEvents": source}

    @cached_property
    def expected(self):
        path = self.path.removesuffix(".gz").removesuffix(".json") + ".expected.json"
        return load(path) if os.path.exists(path) else None

    @cached_property
    def weir(self):
        if self.path.endswith(".weir"):
            return self.path
        self.run("import", "-o", self.file(".weir"), self.path)
        self.import_said = self.said
        return self.file(".weir")

    @cached_property
    def report(self):
        return json.loads(self.run("report", "--json", "-n", "0", self.weir))

    @cached_property
    def by_shape(self):
        return json.loads(self.run("report", "--json", "-n", "0", "--only", "operators_by_shape", self.weir))["operators_by_shape"]

    @cached_property
    def hints(self):
        return json.loads(self.run("hints", "--json", self.weir))

    @cached_property
    def memory(self):
        return json.loads(self.run("memory", "--json", self.weir))

    @cached_property
    def chrome(self):
        self.run("export", "-f", "chrome", "-o", self.file(".again.json"), self.weir)
        return load(self.file(".again.json"))

    @cached_property
    def again(self):
        self.chrome
        return Trace(self.command, self.file(".again.json"), self.work)

    def events(self, *categories):
        """The events with a length, of the source."""
        return [e for e in self.source["traceEvents"] if e.get("ph") == "X" and e.get("cat") in categories]


def kept():
    """The variants of other makers are of kinds that Kineto's categories do not say, so not here."""
    patterns = [os.path.join(HERE, "kineto", "*.json"), os.path.join(HERE, "kineto", "*.json.gz"),
                os.path.join(HERE, "problems", "*.weir"), os.path.join(HERE, "readme", "*.weir"),
                os.path.join(HERE, "live", "*.weir"),
                os.path.join(HERE, "..", "..", "..", "shared", "data", "kineto", "*.json.gz")]
    for folder in filter(None, os.environ.get("WEIR_TRACES", "").split(":")):
        patterns += [os.path.join(folder, "*" + ending) for ending in (".json", ".json.gz", ".weir")]
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    return [path for path in found if not path.endswith(".expected.json")]


def differences(what, one, two, most=3):
    """How two dictionaries differ, in sentences."""
    keys = [key for key in sorted(one.keys() | two.keys(), key=str) if one.get(key) != two.get(key)]
    for key in keys[:most]:
        yield "%s: %s is %s, and should be %s" % (what, str(key)[:160], two.get(key), one.get(key))
    if len(keys) > most:
        yield "%s: %d more differ" % (what, len(keys) - most)
