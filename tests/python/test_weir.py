"""weir's Python package, on a PyTorch that is made for it (fake/) and a recorder that keeps a list.

The environment says where the package is (WEIR_PACKAGE) and, for the tests of the whole, the
program (WEIR_BIN).
"""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.environ["WEIR_PACKAGE"]
FAKE = os.path.join(HERE, "fake", "site-packages")
SHAPES = ("Input Dims", "module dtype", "module autocast", "module conv")
sys.path[:0] = [PACKAGE, FAKE]

from weir import imports, lines, modules, operators, ranges, sampling  # noqa: E402


class Recorder:
    """Stands in for libweir.so."""

    def __init__(self):
        self.texts, self.defined, self.open, self.seen = [None], [None], [], []

    def string(self, text):
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)

    def define(self, kind, scope, name, args=None):
        self.defined.append((kind, scope, name, args))
        return len(self.defined) - 1

    def push(self, number):
        kind, scope, name, args = self.defined[number]
        self.open.append(scope)
        self.seen.append((kind, name, args))

    def pop(self, scope):
        if scope not in self.open:
            raise AssertionError("nothing to end in %r" % self.texts[scope])
        del self.open[len(self.open) - 1 - self.open[::-1].index(scope)]


    def inside(self, scope):
        return scope in self.open


recorder = Recorder()
ranges.push, ranges.pop = recorder.push, recorder.pop
ranges.string, ranges.define = recorder.string, recorder.define
ranges.inside, ranges.itt = recorder.inside, lambda: False


class Imports(unittest.TestCase):
    def tearDown(self):
        for name in ("found", "broken"):
            sys.modules.pop(name, None)

    def write(self, name, text):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        sys.path.insert(0, directory.name)
        self.addCleanup(sys.path.remove, directory.name)
        with open(os.path.join(directory.name, name + ".py"), "w") as f:
            f.write(text)

    def test_what_follows_an_import_comes_once_and_the_loader_stays_itself(self):
        self.write("found", "value = 1\n")
        seen = []
        finders = list(sys.meta_path)
        imports.when("found", seen.append)
        import found
        self.assertEqual(seen, [found])
        self.assertEqual(sys.meta_path, finders)
        self.assertNotIn("exec_module", vars(found.__spec__.loader))
        self.assertIn("value = 1", found.__spec__.loader.get_source("found"))

    def test_a_module_that_is_there_already_is_told_of_at_once(self):
        seen = []
        imports.when("json", seen.append)
        self.assertEqual(seen, [json])

    def test_an_import_that_fails_fails_as_it_would(self):
        self.write("broken", "raise ValueError('mine')\n")
        imports.when("broken", self.fail)
        with self.assertRaisesRegex(ValueError, "mine"):
            import broken  # noqa: F401

    def test_a_module_that_is_not_there_is_waited_for(self):
        seen = []
        imports.when("found", seen.append)
        with self.assertRaises(ImportError):
            import found
        self.write("found", "")
        import found
        self.assertEqual(seen, [found])


class Operators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch
        from torch.autograd import profiler

        cls.profiler = profiler
        cls.bootstrap = threading.Thread._bootstrap_inner
        cls.observer = operators.start(torch)

    def setUp(self):
        del self.profiler.log[:]

    def test_the_observer_is_on_and_says_names(self):
        self.assertEqual(self.profiler.active().state, "nvtx")
        self.assertFalse(self.profiler.active().shapes)

    def test_it_is_changed_for_the_one_with_shapes_and_back(self):
        one = threading.get_ident()
        for shapes in (True, True, False, False):
            self.observer.switch(shapes)
        self.assertEqual(self.profiler.log, [
            ("off", "nvtx", False, one), ("on", "nvtx", True, one),
            ("off", "nvtx", True, one), ("on", "nvtx", False, one)])

    def test_it_is_not_changed_while_the_program_has_its_own(self):
        with self.profiler.profile():
            self.observer.switch(True)
            self.assertEqual(self.profiler.active().state, "kineto")
        self.assertFalse(self.profiler.active().shapes)

    def test_a_thread_has_its_own_as_long_as_it_lasts(self):
        states = []
        thread = threading.Thread(target=lambda: states.append(self.profiler.active().state))
        thread.start()
        one = thread.ident
        thread.join()
        self.assertEqual(states, ["nvtx"])
        self.assertEqual(self.profiler.log, [("on", "nvtx", False, one), ("off", "nvtx", False, one)])

    def test_a_profiler_of_the_programs_finds_the_place_free(self):
        with self.profiler.profile():
            self.assertEqual(self.profiler.active().state, "kineto")
        self.assertEqual(self.profiler.active().state, "nvtx")
        with self.assertRaisesRegex(RuntimeError, "already enabled"):
            with self.profiler.profile():
                with self.profiler.profile():
                    pass
        self.assertEqual(self.profiler.active().state, "nvtx")

    def test_one_that_can_not_be_switched_on_leaves_ours(self):
        with self.assertRaisesRegex(ValueError, "broken"):
            self.profiler.profile("broken").__enter__()
        self.assertEqual(self.profiler.active().state, "nvtx")

    def test_a_thread_that_dies_of_an_exception_is_left_in_order(self):
        hook, threading.excepthook = threading.excepthook, lambda _: None
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        threading.excepthook = hook
        self.assertEqual(self.profiler.log[-1], ("off", "nvtx", False, thread.ident))


class Sampling(unittest.TestCase):
    """When the observer is to tell of shapes."""

    def setUp(self):
        import torch

        class Observer:
            shapes = False

            def switch(self, shapes):
                self.shapes = shapes

        self.torch = torch
        self.observer = Observer()
        self.sampler = sampling.Sampler(torch, self.observer)
        self.addCleanup(torch.set_grad_enabled, True)

    def call(self, key, count):
        """Whether shapes are told in a call, and behind it."""
        self.sampler.begin(key, 0, count)
        inside = self.observer.shapes
        if self.sampler.ending:
            self.sampler.end(key, 0)
        return inside, self.observer.shapes

    def test_calls_are_told_less_and_less_often(self):
        count = [0]
        told = [n for n in range(1, 300) if self.call(1, count)[0]]
        self.assertEqual(told, [1, 2, 4, 8, 16, 32, 64, 128, 192, 256])

    def test_with_gradients_what_follows_the_call_is_told_of(self):
        count = [0]
        self.assertEqual([self.call(1, count) for _ in range(3)],
                         [(True, True), (True, True), (False, False)])

    def test_without_gradients_it_is_not(self):
        self.torch.set_grad_enabled(False)
        self.assertEqual(self.call(1, [0]), (True, False))

    def test_nor_with_several_gpus_in_use(self):
        self.addCleanup(self.torch.cuda.reserved.clear)
        self.torch.cuda.reserved[:] = [1, 0]
        self.assertEqual(self.call(1, [0]), (True, True))
        self.torch.cuda.reserved[:] = [1, 1]
        self.assertEqual(self.call(1, [0]), (True, False))

    def test_inside_an_operator_nothing_changes(self):
        count = [0]
        recorder.open.append(0)
        self.assertEqual(self.call(1, count), (False, False))
        recorder.open.clear()
        self.assertEqual(self.call(1, count), (True, True))
        recorder.open.append(0)
        self.assertEqual(self.call(1, count), (True, True))
        recorder.open.clear()
        self.assertEqual(self.call(2, [4]), (False, False))

    def test_modules_made_for_one_call_share_a_count(self):
        counts = [self.sampler.count(5) for _ in range(100)]
        self.assertEqual(sum(self.call(1, count)[0] for count in counts), 64 + 5)


class Modules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch

        cls.torch = torch
        modules.start(torch)

    def setUp(self):
        recorder.seen.clear()

    def names(self):
        self.assertEqual(recorder.open, [])
        return [name for _, name, _ in recorder.seen]

    def make(self):
        class Attention(self.torch.nn.Module):
            pass

        class Layer(self.torch.nn.Module):
            pass

        class Model(self.torch.nn.Module):
            pass

        half = self.torch.float16
        return Model(encoder=Layer(self.torch.float32, attention=Attention(half)), act=Layer())

    def test_modules_are_named_by_their_path_from_the_outermost(self):
        model = self.make()
        self.assertEqual(model(7), 7)
        want = ["Model", "encoder (Layer)", "encoder.attention (Attention)", "act (Layer)"]
        self.assertEqual(self.names(), want)
        model.children["encoder"](7)
        self.assertEqual(self.names(), want + want[1:3])
        self.assertEqual({kind for kind, _, _ in recorder.seen}, {ranges.ANNOTATION})

    def test_a_modules_first_parameter_tells_the_type(self):
        self.make()(7)
        self.assertEqual([args for _, _, args in recorder.seen],
                         ['{"dtype":"float32"}', '{"dtype":"float32"}', '{"dtype":"float16"}', None])

    def test_autocast_stands_beside_the_type_as_long_as_it_lasts(self):
        model = self.make()
        bfloat16 = '{"dtype":"float%d","autocast":"bfloat16"}'
        with self.torch.autocast("cuda", self.torch.bfloat16):
            model(7)
            with self.torch.autocast("cuda", enabled=False):
                model.children["encoder"](7)
        self.assertEqual([args for _, _, args in recorder.seen], [
            bfloat16 % 32, bfloat16 % 32, bfloat16 % 16, None, '{"dtype":"float32"}', '{"dtype":"float16"}'])
        recorder.seen.clear()
        defined = len(recorder.defined)
        with self.torch.autocast("cuda", self.torch.bfloat16):
            model(7)
        with self.torch.autocast("cuda"):
            model.children["encoder"].children["attention"](7)
        model(7)
        self.assertEqual([args for _, _, args in recorder.seen], [
            bfloat16 % 32, bfloat16 % 32, bfloat16 % 16, None, '{"dtype":"float16","autocast":"float16"}',
            '{"dtype":"float32"}', '{"dtype":"float32"}', '{"dtype":"float16"}', None])
        self.assertEqual(len(recorder.defined), defined + 1)

    def test_a_pytorch_without_autocast_has_the_types_of_modules(self):
        class Older:
            is_autocast_enabled = staticmethod(lambda: True)

        self.assertFalse(modules._autocast_of(object())[0]())
        self.assertFalse(modules._autocast_of(Older)[0]())
        Older.get_autocast_gpu_dtype = staticmethod(lambda: self.torch.float16)
        self.assertEqual([of() for of in modules._autocast_of(Older)], [True, self.torch.float16])

    def test_a_call_that_raises_ends_its_ranges(self):
        model = self.make()
        model.children["encoder"].children["attention"].forward = lambda x: 1 / 0
        with self.assertRaises(ZeroDivisionError):
            model(7)
        self.assertEqual(len(self.names()), 3)

    def test_what_is_being_compiled_is_left_alone(self):
        self.torch.compiler.compiling = True
        self.make()(7)
        self.torch.compiler.compiling = False
        self.assertEqual(self.names(), [])

    def test_modules_that_are_gone_are_forgotten(self):
        self.make()(7)
        import gc

        gc.collect()
        before = len(modules._known)
        for _ in range(100):
            self.make()(7)
        gc.collect()
        self.assertLessEqual(len(modules._known), before)

    def test_a_replica_is_not_looked_into(self):
        model = self.make()
        model._is_replica = True
        model(7)
        self.assertEqual(self.names()[0], "Model")

    def test_a_forked_child_names_everything_again(self):
        model = self.make()
        model(7)
        modules._reset()
        recorder.seen.clear()
        model(7)
        self.assertEqual(len(self.names()), 4)


class Lines(unittest.TestCase):
    def test_own_files_are_those_outside_the_installation(self):
        self.assertTrue(lines.is_own(__file__))
        self.assertFalse(lines.is_own(json.__file__))
        self.assertFalse(lines.is_own(lines.__file__))
        self.assertFalse(lines.is_own("<string>"))
        self.assertFalse(lines.is_own("/venv/lib/python3/site-packages/numpy/core.py"))


PROGRAM = """
import torch
def step(model, x):
    y = model(x)
    return y
class Net(torch.nn.Module):
    def forward(self, x):
        torch.mm((4, 8), (8, 16))
        return super().forward(x)
net = Net(torch.float16, body=Net())
for i in range(5):
    step(net, i)
try:
    step(None, 1)
except TypeError:
    print("done")
torch.mm((4, 8), (8, 16))
"""


class Whole(unittest.TestCase):
    """Under the real recorder, which needs no driver for this."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        with open(self.path("program.py"), "w") as f:
            f.write(PROGRAM)

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_it(self, *command, paths=()):
        environment = {k: v for k, v in os.environ.items() if k not in ("WEIR", "WEIR_PYTHON")}
        environment["PYTHONPATH"] = os.pathsep.join((FAKE,) + tuple(paths))
        return subprocess.run(command, cwd=self.directory, env=environment, universal_newlines=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def report(self):
        result = self.run_it(os.environ["WEIR_BIN"], "report", "--json", "--top=0", "t.weir")
        self.assertEqual(result.returncode, 0, result.stderr)
        return {row["name"]: row for row in json.loads(result.stdout)["operators"]}

    def record(self, *options, python=(sys.executable, "program.py"), paths=()):
        result = self.run_it(os.environ["WEIR_BIN"], "record", "-q", "-o", "t.weir", *options, "--",
                             *python, paths=paths)
        said = [line for line in result.stderr.splitlines() if not line.startswith("weir: no CUDA call was ")]
        self.assertEqual((result.returncode, result.stdout, said), (0, "done\n", []))

    def check_modules(self):
        rows = self.report()
        self.assertEqual(rows["Net"]["count"], 5)
        self.assertEqual(rows["body (Net)"]["count"], 5)
        self.assertEqual(rows["Net"]["kind"], "annotation")
        self.assertEqual(rows["aten::mm"]["count"], 11)
        self.assertEqual(rows["aten::mm"]["kind"], "operator")

    def arguments(self, name="aten::mm"):
        result = self.run_it(os.environ["WEIR_BIN"], "export", "-f", "chrome", "t.weir")
        told = ({key: e["args"][key] for key in SHAPES if key in e["args"]}
                for e in json.loads(result.stdout)["traceEvents"] if e.get("name") == name)
        return [arguments for arguments in told if arguments]

    def external_ids(self):
        """How many ranges were told one; an export for Chrome numbers the others too."""
        self.run_it(os.environ["WEIR_BIN"], "export", "-f", "sqlite", "-o", "t.db", "t.weir")
        database = sqlite3.connect(self.path("t.db"))
        self.addCleanup(database.close)
        return database.execute("SELECT count(externalId) FROM ranges").fetchone()[0]

    def test_an_unmodified_command_is_recorded(self):
        self.record("--python")
        self.check_modules()

    def test_the_package_runs_a_script(self):
        self.record(python=(sys.executable, "-m", "weir", "program.py"), paths=(PACKAGE,))
        self.check_modules()

    def test_the_package_runs_a_module(self):
        self.record(python=(sys.executable, "-m", "weir", "-m", "program"), paths=(PACKAGE,))
        self.check_modules()

    def test_operators_have_shapes_and_the_type_of_their_module(self):
        self.record("--python=shapes")
        self.check_modules()
        dims = {"Input Dims": [[4, 8], [8, 16]]}
        typed = dict(dims, **{"module dtype": "float16"})
        self.assertEqual(self.arguments(), [typed] * 10 + [dims])

    def test_a_convolution_says_how_it_goes(self):
        with open(self.path("program.py"), "a") as f:
            f.write("class Own(torch.nn.Conv2d):\n    def forward(self, x):\n"
                    "        return super().forward(x)\n"
                    "for made in (torch.nn.Conv2d, Own):\n"
                    "    for stride, padding in ((2, (1, 1)), (1, 'same'), (1, 'valid')):\n"
                    "        made(torch.float16, stride, padding)(0)\n")
        self.record("--python=shapes")
        told = self.arguments("aten::conv2d")
        self.assertEqual(len(told), 6)
        conv = {"stride": [2, 2], "padding": [1, 1], "dilation": [1, 1], "output_padding": [0, 0],
                "groups": 1, "transposed": False}
        self.assertEqual(told[0], {"Input Dims": [[2, 3, 8, 8], [5, 3, 3, 3]],
                                   "module dtype": "float16", "module conv": conv})
        self.assertEqual(told[1]["module conv"]["padding"], "same")
        self.assertEqual(told[2]["module conv"]["padding"], [0])
        # A forward of its own may do anything.
        self.assertEqual([t.get("module conv") for t in told[3:]], [None] * 3)
        report = json.loads(self.run_it(os.environ["WEIR_BIN"], "report", "--json", "t.weir").stdout)
        row = next(o for o in report["operators"] if o["name"] == "aten::conv2d")
        self.assertEqual(row["flops"], 2 * 2 * 135 * (16 + 64 + 36))

    def test_under_autocast_a_product_has_its_type(self):
        with open(self.path("program.py"), "a") as f:
            f.write("with torch.autocast('cuda', torch.bfloat16):\n    torch.nn.Conv2d(torch.float32, 2, (1, 1))(0)\n")
        self.record("--python=shapes")
        told, = self.arguments("aten::conv2d")
        self.assertEqual((told["module dtype"], told["module autocast"]), ("float32", "bfloat16"))
        report = json.loads(self.run_it(os.environ["WEIR_BIN"], "report", "--json", "t.weir").stdout)
        row = next(o for o in report["operators"] if o["name"] == "aten::conv2d")
        self.assertEqual(row["bytes"], 2 * (384 + 160 + 135))

    def test_operators_have_shapes_in_some_calls(self):
        self.record("--python")
        self.check_modules()
        self.assertEqual(len(self.arguments()), 2 * 3)  # the calls 1, 2 and 4, each a module in another

    def test_shapes_are_told_until_the_next_call_with_gradients(self):
        with open(self.path("program.py"), "a") as f:
            f.write("step(net, 6)\nstep(net, 7)\nstep(net, 8)\ntorch.mm((3, 3), (3, 3))\n")
        self.record("--python")
        self.assertEqual(self.arguments()[-1], {"Input Dims": [[3, 3], [3, 3]]})
        self.assertEqual(len(self.arguments()), 2 * 4 + 1)

    def test_a_module_that_an_operator_calls_changes_nothing(self):
        with open(self.path("program.py"), "a") as f:
            f.write("for i in range(9):\n    torch.operator('my::op', (2, 2), inside=lambda: net(i))\n"
                    "net(9)\n")
        self.record("--python")
        self.assertEqual(self.report()["my::op"]["count"], 9)
        self.assertEqual(self.report()["Net"]["count"], 5 + 9 + 1)
        self.assertEqual(len(self.arguments()), 2 * 3)

    def test_names_come_through_itt(self):
        with open(self.path("program.py"), "a") as f:
            f.write("import os\nassert 'INTEL_LIBITTNOTIFY64' not in os.environ\ntorch._itt.early()\n")
        self.record("--python=names")
        self.assertEqual(self.report()["early"]["kind"], "annotation")
        self.assertEqual(self.report()["early"]["count"], 1)  # and none of another domain
        self.assertNotIn("weir", self.report())
        self.assertEqual(self.external_ids(), 0)  # what NVTX gets has them

    def test_names_come_through_nvtx_where_itt_is_somebody_elses(self):
        os.environ["INTEL_LIBITTNOTIFY64"] = "/there/is/none.so"
        self.addCleanup(os.environ.pop, "INTEL_LIBITTNOTIFY64")
        self.record("--python=names")
        self.check_modules()
        self.assertGreater(self.external_ids(), 0)

    def test_operators_have_no_shapes_where_names_are_asked_for(self):
        self.record("--python=names")
        self.check_modules()
        self.assertEqual(self.arguments(), [])

    def test_a_forked_child_goes_on(self):
        with open(self.path("program.py"), "a") as f:
            f.write("import os\nif os.fork():\n    os.wait()\nelse:\n    step(net, 1)\n    os._exit(0)\n")
        self.record("--python")
        self.assertEqual(self.report()["body (Net)"]["count"], 6)
        self.assertEqual(self.report()["aten::mm"]["count"], 13)

    def test_the_versions_of_pytorch_and_python_are_recorded(self):
        self.record("--python")
        report = json.loads(self.run_it(os.environ["WEIR_BIN"], "report", "--json", "t.weir").stdout)
        self.assertEqual(report["provenance"]["torch"], "2.9.0+fake")
        self.assertEqual(report["provenance"]["python"], sys.version.split()[0])

    def test_a_part_of_the_run_is_found_by_the_name_of_a_module(self):
        self.record("--python", "--capture=range:body (Net)")
        rows = self.report()
        self.assertEqual(rows["body (Net)"]["count"], 5)
        self.assertNotIn("Net", rows)

    def test_without_being_asked_nothing_is_recorded(self):
        self.record()
        self.assertEqual(self.report(), {})

    def test_lines_are_recorded_where_they_are_asked_for(self):
        self.record("--python=lines")
        self.check_modules()
        result = self.run_it(os.environ["WEIR_BIN"], "export", "-f", "chrome", "t.weir")
        events = json.loads(result.stdout)["traceEvents"]
        own = [e["name"].rsplit("/", 1)[-1] for e in events if e.get("cat") == "python_function"]
        self.assertEqual(own.count("program.py:4"), 6)
        self.assertEqual(own.count("program.py:5"), 5)
        self.assertEqual(own.count("program.py:15"), 1)
        self.assertFalse([n for n in own if not n.startswith("program.py:")])

    def test_a_line_lasts_as_long_as_what_it_calls(self):
        self.record("--python=lines")
        result = self.run_it(os.environ["WEIR_BIN"], "export", "-f", "chrome", "t.weir")
        events = json.loads(result.stdout)["traceEvents"]
        spans = [(e["ts"], e["ts"] + e["dur"], e["name"]) for e in events if e.get("ph") == "X"]
        calls = [s for s in spans if s[2] == "Net"]
        sites = [s for s in spans if s[2].endswith("program.py:4")]
        for begin, end, _ in calls:
            self.assertTrue([s for s in sites if s[0] <= begin and end <= s[1]])

    def test_another_sitecustomize_is_run_as_well(self):
        os.mkdir(self.path("mine"))
        with open(self.path("mine/sitecustomize.py"), "w") as f:
            f.write("import sys; sys.mine = __file__")
        with open(self.path("program.py"), "a") as f:
            f.write("\nimport sys, sitecustomize; assert sys.mine == sitecustomize.__file__\n")
        self.record("--python", paths=(self.path("mine"),))
        self.check_modules()

    def test_without_a_recorder_the_package_says_how_to_run_it(self):
        result = self.run_it(sys.executable, "-m", "weir", "program.py", paths=(PACKAGE,))
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("weir record -- python3 -m weir program.py", result.stderr)

    def test_a_command_is_the_program_beside_the_package(self):
        result = self.run_it(sys.executable, "-m", "weir", "report", "--sort", paths=(PACKAGE,))
        self.assertEqual(result.returncode, 2)
        self.assertIn("weir report: ", result.stderr)

    def test_without_a_recorder_the_start_up_file_does_nothing(self):
        result = self.run_it(sys.executable, "program.py", paths=(PACKAGE,))
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "done\n", ""))

    def test_a_wrong_word_is_told(self):
        result = self.run_it(os.environ["WEIR_BIN"], "record", "--python=shape", "--", "true")
        self.assertEqual(result.returncode, 2)
        self.assertIn("lines, names or shapes", result.stderr)


if __name__ == "__main__":
    unittest.main()
