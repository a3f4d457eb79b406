"""python3 -m weir COMMAND [ARGUMENT...] is the program weir; python3 -m weir SCRIPT.py [ARGUMENT...], or -m MODULE
[ARGUMENT...], runs a script or a module with its operators named.

python3 -m weir export-torch REPOSITORY MODEL: export_torch.py.
python3 -m weir kernelspec install: notebook.py."""
import os
import runpy
import sys

import weir

USAGE = """usage: weir record -- python3 -m weir SCRIPT [ARGUMENT...]
       weir record -- python3 -m weir -m MODULE [ARGUMENT...]
       python3 -m weir export-torch --help
       python3 -m weir COMMAND [ARGUMENT...]
       python3 -m weir kernelspec --help
"""


def become_program(arguments):
    program = weir.program()
    if not program:
        sys.stderr.write("weir: the program weir is neither beside this package nor in PATH\n")
        return 3
    os.execv(program, [program] + arguments)


def is_command(word):
    """A script's name has a suffix or a folder; a command's has neither."""
    return "." not in word and "/" not in word and not word.startswith("-")


def main():
    del sys.argv[0]
    if not sys.argv or sys.argv[0] in ("-h", "--help") or sys.argv == ["-m"]:
        sys.stderr.write(USAGE)
        return 2
    if sys.argv[0] == "export-torch":
        from weir import export_torch
        return export_torch.main(sys.argv[1:])
    if sys.argv[0] == "kernelspec":
        from weir import notebook
        return notebook.main(sys.argv[1:])
    if is_command(sys.argv[0]):
        return become_program(sys.argv)
    if not weir.recorded():
        weir.warn("nobody is recording; run it as\n\n    weir record -- python3 -m weir %s\n\n"
                  "or leave the command as it is: weir record --python -- python3 %s"
                  % ((" ".join(sys.argv),) * 2))
        return 2
    weir.start()
    if sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
