"""Weir in notebooks.

`python3 -m weir kernelspec install` adds a kernel to Jupyter, this Python under weir record, which records nothing until
it is asked to.  A cell that begins with %%weir is recorded, and shows its summary and its page.  he words behind %%weir are options of weir report.
"""
import argparse
import html
import json
import os
import shlex
import subprocess
import sys
import tempfile

import weir
from weir import ranges, reader

_cells = 0


def kernel(name, options):
    """The command that Jupyter starts, as its kernel.json says it."""
    trace = os.path.join(tempfile.gettempdir(), "weir-notebook-%p.weir")
    return {"argv": [reader.program(), "record", "--quiet", "--level=off", "--gpu", "--python", *options, "-o", trace, "--",
                     sys.executable, "-m", "ipykernel_launcher", "--ext=weir.notebook", "-f", "{connection_file}"],
            "display_name": name, "language": "python", "metadata": {"debugger": True}}


def kernels():
    """The folder in which Jupyter looks for the kernels of this user."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(os.environ.get("JUPYTER_DATA_DIR") or os.path.join(data, "jupyter"), "kernels")


def main(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m weir kernelspec", description="Add a kernel to Jupyter whose cells "
                                     "%%weir records. Options behind -- are those of weir record.")
    parser.add_argument("command", choices=["install"])
    parser.add_argument("--name", default="weir", help="the directory of the kernel, and its name for jupyter")
    parser.add_argument("--display-name", default="Python 3 (Weir)", help="its name in notebooks")
    parser.add_argument("--prefix", help="install into PREFIX/share/jupyter instead of this user's directory")
    split = arguments.index("--") if "--" in arguments else len(arguments)
    given = parser.parse_args(arguments[:split])
    to = os.path.join(given.prefix, "share/jupyter/kernels") if given.prefix else kernels()
    to = os.path.join(to, given.name)
    os.makedirs(to, exist_ok=True)
    with open(os.path.join(to, "kernel.json"), "w") as out:
        json.dump(kernel(given.display_name, arguments[split + 1:]), out, indent=1)
        out.write("\n")
    print("installed " + to)
    return 0


def _weir(*arguments):
    done = subprocess.run([reader.program(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise reader.Error(done.stderr.strip())
    return done.stdout


def _finish():
    """Waits for the GPU, where PyTorch is what uses it, so that the cell's work is in its summary."""
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    ranges.collect()


def record(shell, text):
    """Runs a cell, recorded: the recording, and the range in it that is the cell."""
    global _cells
    _cells += 1
    trace = os.environ["WEIR"].split("record:", 1)[1]
    name, scope = "cell %d" % _cells, ranges.string("notebook")
    _weir("ctl", trace, "on")
    ranges.push(ranges.define(ranges.ANNOTATION, scope, name))
    try:
        shell.run_cell(text)
    finally:
        ranges.pop(scope)
        _finish()
        _weir("ctl", trace, "off")
    return trace, name


def cell(shell, display, line, text):
    """%%weir: display shows HTML."""
    if not ranges.open() or "record:" not in os.environ.get("WEIR", ""):
        weir.warn("this kernel is not recorded. Run `python3 -m weir kernelspec install`, and choose the kernel Python 3 (Weir)")
        return
    trace, name = record(shell, text)
    try:
        print(_weir("report", *shlex.split(line), "--range", name, trace))
        page = _weir("html", "--range", name, trace)
    except reader.Error as e:
        weir.warn(str(e))
        return
    display('<iframe srcdoc="%s" sandbox="allow-scripts" style="width: 100%%; height: 40em; border: 0"></iframe>'
            % html.escape(page))


def load_ipython_extension(shell):
    """By IPython, for --ext=weir.notebook and %load_ext weir.notebook."""
    def show(text):
        from IPython.display import HTML, display

        display(HTML(text))

    shell.register_magic_function(lambda line, text: cell(shell, show, line, text), "cell", "weir")
