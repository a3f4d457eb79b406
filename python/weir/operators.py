"""PyTorch's operators, through its own observer that says them to NVTX (what emit_nvtx switches on).

The observer belongs to a thread, and PyTorch hands it on to the threads that run backward passes.
It is switched on in each thread that threading starts.  A thread has room for one observer:
while the program has its own, a torch.profiler say, ours is away.
"""
import atexit
import threading

import weir

_here = threading.local()


class _Observer:
    def __init__(self, profiler, shapes):
        self.enable, self.disable = profiler._enable_profiler, profiler._disable_profiler
        # No synchronize() and no _run_on_profiler_start(), as emit_nvtx has them: the one makes a
        # CUDA context, the other makes the program behave as under a profiler.
        self.config = profiler.ProfilerConfig(
            profiler.ProfilerState.NVTX, shapes, False, False, False, False,
            profiler._ExperimentalConfig())

    def on(self):
        self.enable(self.config, set())
        _here.on = True

    def off(self):
        if getattr(_here, "on", False):
            _here.on = False
            self.disable()
            return True
        return False


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


def start(torch, shapes=True):
    try:
        from torch.autograd import profiler

        observer = _Observer(profiler, shapes)
        observer.on()
    except (ImportError, AttributeError, TypeError, RuntimeError) as e:
        weir.warn("this PyTorch's operators are not recorded: %s" % e)
        return
    _give_way(profiler, observer)
    _follow_threads(observer)
    atexit.register(observer.off)
