"""weir cdi, by what the specification of CDI asks of a file, and by what its variables do: test_cdi.py BUILD.

The rules are those of the specification and of the library by which runtimes read such files.  Both refuse a file for
an unknown key.  Each rule is tried on spoiled files as well.
"""
import copy
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop(1))
WEIR = BUILD + "/bin/weir"
NAME = r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?"


def keys(what, needed, others=()):
    assert isinstance(what, dict), "an object is expected"
    assert set(needed) <= set(what) <= set(needed) | set(others), sorted(what)


def check_edits(edits):
    keys(edits, (), ("env", "mounts", "deviceNodes", "hooks"))
    assert edits, "empty edits"
    for variable in edits.get("env", ()):
        assert re.fullmatch(r"[^=]+=.*", variable), variable
    for mount in edits.get("mounts", ()):
        keys(mount, ("hostPath", "containerPath"), ("options",))  # with a type, CDI 0.4.0 is needed
        assert mount["hostPath"].startswith("/") and mount["containerPath"].startswith("/"), mount
        assert all(isinstance(option, str) for option in mount.get("options", ()))


def check(spec):
    keys(spec, ("cdiVersion", "kind", "devices"), ("containerEdits",))
    assert spec["cdiVersion"] == "0.3.0"
    vendor, name = spec["kind"].split("/")
    assert re.fullmatch(r"[A-Za-z]([A-Za-z0-9.-]*[A-Za-z0-9])?", vendor) and len(vendor) <= 253
    assert re.fullmatch(r"[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?", name) and len(name) <= 63
    assert spec["devices"], "no device"
    names = [device["name"] for device in spec["devices"]]
    assert len(names) == len(set(names)), "a name twice"
    for device in spec["devices"]:
        keys(device, ("name", "containerEdits"))
        assert re.fullmatch(NAME, device["name"]) and device["name"][0].isalpha()
        check_edits(device["containerEdits"])
    check_edits(spec.get("containerEdits", {"env": []}))


def written(*options):
    return json.loads(subprocess.check_output([WEIR, "cdi", *options]))


class Cdi(unittest.TestCase):
    def test_a_runtime_can_read_it(self):
        check(written())
        check(written("--traces", "/srv/traces"))

    def test_the_check_refuses_what_a_runtime_refuses(self):
        def spoil(change):
            spec = copy.deepcopy(good)
            change(spec)
            with self.assertRaises(AssertionError):
                check(spec)

        good = written()
        spoil(lambda s: s.update(schema_version=1))
        spoil(lambda s: s.update(kind="weir/in.ject"))
        spoil(lambda s: s.update(devices=[]))
        spoil(lambda s: s["devices"].append(s["devices"][0]))
        spoil(lambda s: s["devices"][0].update(name="1st"))
        spoil(lambda s: s["devices"][0].update(containerEdits={}))
        spoil(lambda s: s["devices"][0]["containerEdits"]["env"].append("LD_PRELOAD"))
        spoil(lambda s: s["containerEdits"]["mounts"][0].update(type="bind"))
        spoil(lambda s: s["containerEdits"]["mounts"][0].update(hostPath="lib"))

    def test_it_mounts_what_the_variables_name_and_no_more(self):
        spec = written()
        mounts = spec["containerEdits"]["mounts"]
        self.assertEqual([m["hostPath"] for m in mounts], [WEIR, BUILD + "/lib/weir", "/var/lib/weir"])
        self.assertEqual([m["options"][0] for m in mounts], ["ro", "ro", "rw"])
        for device in spec["devices"]:
            for variable in device["containerEdits"]["env"]:
                path = re.sub(".*[=:]", "", variable)
                self.assertTrue(any(path.startswith(m["containerPath"] + "/") for m in mounts), variable)

    def test_a_program_with_its_variables_is_recorded(self):
        with tempfile.TemporaryDirectory() as traces:
            for device in written("--traces", traces)["devices"]:
                env = dict(v.split("=", 1) for v in device["containerEdits"]["env"])
                env["LD_LIBRARY_PATH"] = BUILD + "/lib/weir/sim"  # in place of the driver of a GPU
                subprocess.check_call([BUILD + "/examples/vecadd"], env=env, stdout=subprocess.DEVNULL)
                trace = "%s/%s.weir" % (traces, socket.gethostname())
                report = json.loads(subprocess.check_output([WEIR, "report", "--json", trace]))
                self.assertEqual(report["totals"]["launches"], 220 + 20)
                timed = bool(report["totals"]["device_kernels"])
                self.assertEqual(timed, device["name"] == "gpu")
                os.remove(trace)

    def test_files_are_written_whole(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = scratch + "/weir.json"
            subprocess.check_call([WEIR, "cdi", "-o", path])
            with open(path) as spec:
                self.assertEqual(json.load(spec), written())

    def test_a_wrong_directory_is_refused(self):
        for wrong in "here", "/", "":
            done = subprocess.run([WEIR, "cdi", "--traces", wrong], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""), wrong)
            self.assertIn("--traces", done.stderr)


unittest.main()
