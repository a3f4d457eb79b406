"""Does something when the program has imported a module; never imports one itself."""
import importlib.util
import sys


class _Finder:
    """Stands in front of the others, finds the module as they do, and goes away."""

    def __init__(self, name, then, before):
        self.name, self.then, self.before = name, then, before

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)  # it may be there another time
            return spec
        self._follow(spec.loader)
        return spec

    def _follow(self, loader):
        """The loader stays what it is, for whoever asks it; its next module is told of."""
        execute = loader.exec_module

        def exec_module(module):
            del loader.exec_module
            self.before()
            execute(module)
            self.then(module)

        try:
            loader.exec_module = exec_module
        except AttributeError:  # one that can't be changed: not a file
            pass


def when(name, then, before=lambda: None):
    """Calls then(module) once it has been imported, at once if it is there already.

    before() is called when the import begins.
    """
    if name in sys.modules:
        then(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, then, before))
