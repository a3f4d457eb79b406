"""PyTorch's operators, through its own observers: what emit_itt and emit_nvtx switch on.

The one for ITT says their names, the one for NVTX their shapes as well.

The observer belongs to a thread, and PyTorch hands it on to the threads that run backward passes.
It is switched on in each thread that threading starts.  A thread has room for one observer:
while the program has its own, a torch.profiler say, ours is away.
"""
import atexit
import threading

import weir
from weir import itt

_here = threading.local()  # config: of our observer in this thread


class _Observer:
    """Two of PyTorch's: the cheapest that there is for names, and that with shapes."""

    def __init__(self, torch, profiler, always):
        self.enable, self.disable = profiler._enable_profiler, profiler._disable_profiler
        states = profiler.ProfilerState

        # No synchronize() and no _run_on_profiler_start(), as emit_nvtx has them: the one makes a
        # CUDA context, the other makes the program behave as under a profiler.
        def config(state, shapes):
            return profiler.ProfilerConfig(state, shapes, False, False, False, False,
                                           profiler._ExperimentalConfig())

        self.full = config(states.NVTX, True)
        if always:
            self.usual = self.full
        else:
            self.usual = config(states.ITT if itt.comes(torch) else states.NVTX, False)

    def on(self, config=None):
        config = config or self.usual
        self.enable(config, set())
        _here.config = config

    def off(self):
        if getattr(_here, "config", None):
            _here.config = None
            self.disable()
            return True
        return False

    def switch(self, shapes):
        """The configuration while no operator is open.  A thread that has none, or another's, keeps
        it so."""
        config = self.full if shapes else self.usual
        if getattr(_here, "config", config) in (None, config):
            return
        self.off()
        try:
            self.on(config)
        except RuntimeError:
            pass


def _give_way(profiler, observer):
    """The program's own observers: ours goes before one comes, and comes back after it went."""

    def enable(*args, **keywords):
        away = observer.off()
        try:
            result = observer.enable(*args, **keywords)
        except BaseException:
            if away:
                observer.on()
            raise
        _here.away = away
        return result

    def disable(*args, **keywords):
        result = observer.disable(*args, **keywords)
        if getattr(_here, "away", False):
            _here.away = False
            observer.on()
        return result

    profiler._enable_profiler, profiler._disable_profiler = enable, disable


def _follow_threads(observer):
    bootstrap = threading.Thread._bootstrap_inner

    def _bootstrap_inner(self):
        try:
            observer.on()
        except RuntimeError:
            pass
        try:
            bootstrap(self)
        finally:
            observer.off()

    threading.Thread._bootstrap_inner = _bootstrap_inner


def start(torch, shapes=False):
    """The observer, on in this thread; None when this PyTorch has none."""
    try:
        from torch.autograd import profiler

        observer = _Observer(torch, profiler, shapes)
        observer.on()
    except (ImportError, AttributeError, TypeError, RuntimeError) as e:
        weir.warn("this PyTorch's operators are not recorded: %s" % e)
        return None
    _give_way(profiler, observer)
    _follow_threads(observer)
    atexit.register(observer.off)
    return observer
