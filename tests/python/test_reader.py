"""Reading recordings from Python: what weir.open() has is what weir report and weir export say.

The environment says where the package is (WEIR_PACKAGE), where the program is (WEIR_BIN), and which
recordings of the source tree are read (WEIR_GOLDEN).  With WITHOUT_NUMPY, NumPy is not there.
"""
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import unittest

if os.environ.get("WITHOUT_NUMPY"):
    sys.modules["numpy"] = None
else:
    try:
        import numpy
    except ImportError:
        print("NumPy is not installed")
        sys.exit(77)
try:
    import pandas
except ImportError:
    pandas = None

WEIR, GOLDEN = os.environ["WEIR_BIN"], os.environ["WEIR_GOLDEN"]
sys.path[:0] = [os.environ["WEIR_PACKAGE"]]

import weir  # noqa: E402
from weir import reader  # noqa: E402


def run(*arguments):
    return subprocess.run([WEIR, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()


class Reading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.eager = cls.folder.name + "/eager.weir"
        run("import", "-q", "-o", cls.eager, GOLDEN + "/kineto/eager.json")
        cls.paths = [cls.eager, GOLDEN + "/problems/eager.weir", GOLDEN + "/problems/copies_in_loop.weir"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_program_is_the_one_of_this_package(self):
        self.assertTrue(os.path.samefile(reader.program(), WEIR))

    def test_rows_by_name_are_those_of_the_report(self):
        for path in self.paths:
            t, report = weir.open(path), json.loads(run("report", "--json", path))
            for name in reader.REPORTED:
                rows = [{k.rstrip("_"): v for k, v in row._asdict().items()} for row in getattr(t, name)]
                keys = {key for row in report.get(name) or [] for key in row}
                want = [{key: row.get(key) for key in keys} for row in report.get(name) or []]
                self.assertEqual(rows, want, name)
            self.assertEqual(t.totals.calls, report["totals"]["calls"])
            self.assertEqual({m.kind: m.peak_bytes for m in t.memory},
                             {k: report["memory"][k]["peak_bytes"] for k in reader.MEMORY_KINDS})

    def test_events_are_those_of_the_lines(self):
        for path in self.paths:
            t, lines = weir.open(path), [json.loads(x) for x in run("export", "-f", "ndjson", path).splitlines()]
            calls = [x for x in lines if x["api"] in ("driver", "runtime")]
            self.assertEqual([(c.start_ns, c.duration_ns, c.pid, c.tid, c.name, c.correlation) for c in t.each_call],
                             [(x["begin_ns"], x["duration_ns"], x["pid"], x["tid"], x["name"], x.get("correlation"))
                              for x in calls])
            self.assertEqual([c.result for c in t.each_call], [x["args"].get("result", 0) for x in calls])
            work = [x for x in lines if x["api"] == "device"]
            self.assertEqual(
                [(a.start_ns, a.duration_ns, a.pid, a.tid, a.kind, a.name or "", a.correlation) for a in t.activities],
                [(x["begin_ns"], x["duration_ns"], x["pid"], x.get("tid"), x["class"], x["name"], x.get("correlation"))
                 for x in work])
            for key in "device", "context", "stream", "bytes", "direction", "registers":
                self.assertEqual([getattr(a, key) for a in t.activities], [x["args"].get(key) for x in work], key)
            self.assertEqual([[a.grid_x, a.grid_y, a.grid_z, a.block_x, a.block_y, a.block_z] for a in t.activities
                              if a.kind == "kernel"],
                             [x["args"]["grid"] + x["args"]["block"] for x in work if x["class"] == "kernel"])
            self.assertEqual([(r.start_ns, r.duration_ns, r.tid, r.kind, r.name or "") for r in t.ranges],
                             [(x["begin_ns"], x["duration_ns"], x["tid"], x["class"], x["name"])
                              for x in lines if x["api"] == "range"])
            listed = json.loads(run("report", "--json", "--only", "gpu_trace", path))["gpu_trace"]
            self.assertEqual(sorted(str((a.start_ns, a.name, a.operator, a.range)) for a in t.activities if a.kind != "sync"),
                             sorted(str((r["start_ns"], r["name"], r["operator"], r["range"])) for r in listed))
            launches = [x for x in calls if x["api"] == "driver" and "grid" in x["args"] and "result" not in x["args"]]
            self.assertEqual([(s.start_ns, s.function, [s.grid_x, s.grid_y, s.grid_z]) for s in t.launches],
                             [(x["begin_ns"], x["name"], x["args"]["grid"]) for x in launches])

    def test_lists_are_those_of_the_report(self):
        for path in self.paths:
            t = weir.open(path)
            for name in "api_trace", "range_kernels", "kernel_families", "busy_over_time", "kernels_at_once":
                rows = json.loads(run("report", "--json", "--only", name, path))[name]
                keys = rows[0] if rows else ()
                got = [tuple(getattr(row, key + "_" if key == "class" else key) for key in keys) for row in t.only(name)]
                self.assertEqual(got, [tuple(row.values()) for row in rows], name)
            self.assertEqual(sum(t.only("kernel_families").count), sum(a.kind in ("kernel", "memcpy", "memset") for a in t.activities))
            with self.assertRaisesRegex(weir.Error, "there is no section nothing"):
                t.only("nothing")

    def test_an_activity_names_the_call_that_asked_for_it(self):
        t = weir.open(self.paths[1])
        calls = {(c.pid, c.correlation): c for c in t.each_call if c.correlation is not None}
        joined = [a for a in t.activities if a.call_start_ns is not None]
        self.assertGreater(len(joined), 1000)
        for a in joined:
            call = calls[a.pid, a.correlation]
            self.assertEqual((a.call_start_ns, a.tid), (call.start_ns, call.tid))
            self.assertAlmostEqual(a.call_duration_ns, call.duration_ns, delta=1)

    def test_columns_are_the_rows(self):
        t = weir.open(self.eager)
        for table in t.activities, t.ranges, t.kernels, t.operators, t.memory:
            rows = list(table)
            self.assertEqual(len(table), len(rows))
            self.assertEqual((table[0], table[-1]), (rows[0], rows[-1]))
            for name in table.columns:
                column = list(table[name])
                self.assertEqual(len(column), len(rows))
                for value, row in zip(column, rows):
                    known = getattr(row, name)
                    if known is None:
                        self.assertTrue(value is None or value == -1 or value != value, (name, value))
                    else:
                        self.assertTrue(value == known, (name, value, known))

    def test_a_kernels_spread_is_that_of_its_activities(self):
        for path in self.paths:
            t, times = weir.open(path), collections.defaultdict(list)
            for a in t.activities:
                times[a.kind, a.name].append(a.duration_ns)
            for k in [("kernel", k) for k in t.kernels] + [(w.kind, w) for w in t.device_activities]:
                kind, k = k
                of = times.get((kind, k.name))
                if not of:
                    continue
                self.assertEqual((k.device_min_ns, k.device_max_ns), (min(of), max(of)))
                self.assertAlmostEqual(k.device_mean_ns, statistics.fmean(of), delta=1)
                if len(of) > 1:
                    self.assertAlmostEqual(k.device_stddev_ns, statistics.stdev(of), delta=1)
                else:
                    self.assertIsNone(k.device_stddev_ns)
        self.assertEqual(t.report["schema_version"], 1)

    def test_numbers_are_arrays(self):
        t = weir.open(self.eager)
        if reader.numpy is None:
            self.assertEqual(sum(t.activities.duration_ns), sum(a.duration_ns for a in t.activities))
            self.assertEqual(sum(t.kernels.count), sum(k.count for k in t.kernels))
        else:
            self.assertEqual(t.activities.duration_ns.dtype, numpy.int64)
            self.assertEqual(t.kernels.count.dtype, numpy.int64)
            self.assertEqual(t.kernels.flops_share.dtype, numpy.float64)
            kernels = t.activities.kind == "kernel"
            self.assertEqual(t.activities.duration_ns[kernels].sum(), t.kernels.device_total_ns.sum())

    @unittest.skipUnless(pandas is not None and reader.numpy is not None, "pandas is not installed")
    def test_frames_have_the_columns(self):
        t = weir.open(self.eager)
        frame = t.activities.frame()
        self.assertEqual(list(frame.columns), list(t.activities.columns))
        sums = frame[frame.kind == "kernel"].groupby("name", observed=True).duration_ns.sum()
        self.assertEqual(dict(sums), {k.name: k.device_total_ns for k in t.kernels})
        self.assertEqual(len(t.kernels.frame()), len(t.kernels))

    def test_several_recordings_are_one(self):
        paths = []
        for rank in 0, 1:
            paths.append(self.folder.name + "/rank%d.weir" % rank)
            run("import", "-q", "-o", paths[-1], GOLDEN + "/kineto/ddp-rank%d.json.gz" % rank)
        both, alone = weir.open(*paths), [weir.open(path) for path in paths]
        self.assertEqual(len(both.activities), sum(len(t.activities) for t in alone))
        self.assertEqual({a.pid for a in both.activities}, {a.pid for t in alone for a in t.activities})
        self.assertEqual(both.totals.calls, sum(t.totals.calls for t in alone))
        with self.assertRaises(FileNotFoundError):
            weir.open(paths[0], paths[0] + ".none")

    def test_a_part_is_that_of_the_report(self):
        t = weir.open(self.paths[1], after="5.9s", before="6s")
        report = json.loads(run("report", "--json", "--after", "5.9s", "--before", "6s", self.paths[1]))
        self.assertEqual(t.report, report)
        every = list(weir.open(self.paths[1]).activities)
        part = [a for a in every if 5900000000 <= a.start_ns]
        self.assertTrue(0 < len(t.activities) < len(every) and len(t.activities) <= len(part))
        self.assertEqual(len(list(weir.open(self.paths[1], steady=False).activities)), len(every))
        with self.assertRaisesRegex(weir.Error, "--after"):
            weir.open(self.eager, after="never").kernels

    def test_a_table_without_rows_has_columns(self):
        empty = self.folder.name + "/empty.weir"
        with open(self.folder.name + "/empty.json", "w") as file:
            json.dump({"traceEvents": [{"ph": "X", "cat": "cuda_runtime", "name": "cudaFree", "pid": 1, "tid": 1, "ts": 1,
                                        "dur": 1}]}, file)
        run("import", "-q", "-o", empty, self.folder.name + "/empty.json")
        t = weir.open(empty)
        self.assertEqual((len(t.activities), list(t.activities), len(t.activities.name)), (0, [], 0))
        self.assertEqual(len(t.each_call), 1)
        self.assertEqual(len(t.kernels), 0)

    def test_mistakes_are_said(self):
        with self.assertRaises(FileNotFoundError):
            weir.open(self.folder.name + "/none.weir")
        with open(self.folder.name + "/text.weir", "w") as file:
            file.write("no recording")
        for ask in (lambda t: t.kernels, lambda t: t.activities):
            with self.assertRaisesRegex(weir.Error, "text.weir"):
                ask(weir.open(self.folder.name + "/text.weir"))
        t = weir.open(self.eager)
        with self.assertRaisesRegex(AttributeError, "no kernel"):
            t.kernel
        with self.assertRaisesRegex(AttributeError, "kernels has no column nme; there are name"):
            t.kernels.nme
        with self.assertRaises(IndexError):
            t.kernels[10 ** 6]

    def test_a_stream_that_is_cut_is_no_table(self):
        text = subprocess.run([WEIR, "export", "-f", "columns", "--only", "ranges", self.eager], check=True,
                              stdout=subprocess.PIPE).stdout
        for size in 0, len(text) - 13:
            with open(self.folder.name + "/cut", "wb") as file:
                file.write(text[:size])
            with open(self.folder.name + "/cut", "rb") as file:
                self.assertFalse(reader._Stream().read(file))

    def test_a_program_that_is_recorded_reads_without_being_recorded(self):
        os.environ["WEIR"] = "record:" + self.folder.name + "/own.weir"
        self.addCleanup(os.environ.pop, "WEIR")
        self.assertNotIn("WEIR", reader._environment())


if __name__ == "__main__":
    unittest.main()
