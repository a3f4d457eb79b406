"""%%weir and the kernel for Jupyter, with IPython where a Python has it, and with a stand-in for it everywhere."""
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PACKAGE = os.environ["WEIR_PACKAGE"]
ENV = {**os.environ, "PYTHONPATH": PACKAGE}

# A notebook's session: SHELL has run_cell().  The calls of the first cell are not recorded.
SESSION = '''
shell.run_cell("""import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
memory, context = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
def use(times):
    for _ in range(times):
        cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096))
        cuda.cuMemsetD8_v2(memory, 0, ctypes.c_size_t(4096))
        cuda.cuMemFree_v2(memory)
    cuda.cuCtxSynchronize()
use(1)""")
shell.run_cell("%%weir\\nuse(7)\\nresult = 3")
shell.run_cell("use(1)")
shell.run_cell("%%weir --only calls --csv\\nuse(2)\\n1 / 0")
shell.run_cell("print('the result is', result)")
'''
STAND_IN = '''
import sys, traceback, types
from weir import notebook
display = types.ModuleType("IPython.display")
display.HTML = str
display.display = lambda page: print("shown", page)
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython.display"] = display
class Shell:
    space = {}
    def register_magic_function(self, function, kind, name):
        assert (kind, name) == ("cell", "weir")
        self.magic = function
    def run_cell(self, text):
        if text.startswith("%%weir"):
            line, _, text = text.partition("\\n")
            return self.magic(line[6:].strip(), text)
        try:
            exec(text, self.space)
        except Exception as e:
            print(type(e).__name__)
shell = Shell()
notebook.load_ipython_extension(shell)
'''
IPYTHON = '''
import IPython.display
from IPython.core.interactiveshell import InteractiveShell
IPython.display.display = lambda page: print("shown", page.data)
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "weir.notebook")
'''


def with_ipython():
    for python in sys.executable, "/usr/bin/python3":
        if not subprocess.run([python, "-c", "import IPython"], capture_output=True).returncode:
            return python
    return None


class Notebook(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name
        self.env = {**ENV, "TMPDIR": self.scratch, "JUPYTER_DATA_DIR": self.scratch + "/jupyter", "HOME": self.scratch}

    def install(self, python, *options):
        subprocess.run([python, "-m", "weir", "kernelspec", "install", *options], env=self.env, check=True,
                       stdout=subprocess.DEVNULL)

    def session(self, python, setup):
        """The output of a session that the installed kernel's command starts."""
        self.install(python, "--", "--sim")
        with open(self.scratch + "/jupyter/kernels/weir/kernel.json") as spec:
            argv = json.load(spec)["argv"]
        program = argv[:argv.index("--") + 1] + [python, "-c", setup + SESSION]
        done = subprocess.run(program, env=self.env, cwd=self.scratch, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def check(self, said):
        first, second = said.split("shown <iframe")[:2]
        self.assertRegex(first, "calls +22\n")  # and not those of other cells
        self.assertRegex(first, "annotation +cell 1\n")
        self.assertRegex(first, r"7 +28.0 KiB +4.00 KiB +[0-9.]+ [mun]s")  # device times are there at once
        page = html.unescape(re.match(r' srcdoc="([^"]*)" sandbox="allow-scripts"', second).group(1))
        self.assertTrue(page.startswith("<!doctype html>"))
        self.assertIn('"cuMemsetD8_v2"', page)
        self.assertIn("ZeroDivisionError", said)
        self.assertRegex(said, "cuMemFree_v2.*2" if "cuMemFree_v2,2" not in said else "cuMemFree_v2,2")
        self.assertIn("the result is 3", said)

    def test_a_cell_is_recorded_and_shown(self):
        self.check(self.session(sys.executable, STAND_IN))

    @unittest.skipUnless(with_ipython(), "IPython is not installed")
    def test_a_cell_of_ipython_is_recorded_and_shown(self):
        self.check(self.session(with_ipython(), IPYTHON))

    def test_a_kernel_that_is_not_recorded_says_so(self):
        done = subprocess.run([sys.executable, "-c", STAND_IN + "shell.run_cell('%%weir\\n1 / 0')"], env=self.env,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("kernelspec install", done.stderr)

    def test_the_kernel_is_put_where_jupyter_looks(self):
        self.install(sys.executable, "--prefix", self.scratch + "/prefix", "--name", "other", "--display-name", "Mine")
        with open(self.scratch + "/prefix/share/jupyter/kernels/other/kernel.json") as spec:
            kernel = json.load(spec)
        self.assertEqual((kernel["display_name"], kernel["language"]), ("Mine", "python"))
        self.assertTrue(os.access(kernel["argv"][0], os.X_OK))
        self.assertEqual(kernel["argv"][-6:], [sys.executable, "-m", "ipykernel_launcher", "--ext=weir.notebook", "-f",
                                               "{connection_file}"])


unittest.main()
