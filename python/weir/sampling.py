"""When operators are told with their shapes.

PyTorch writes the shapes of all arguments out as text, which takes as long as the operator itself.
So they are told in some calls of each outermost module: those with the numbers 1, 2, 4, 8, 16, 32
and 64, and each 64th from then on.  Between calls nothing is inside an operator, and the observer
can be changed for another.

Without gradients that lasts as long as the call.  With them it lasts until the next call of an
outermost module, so that the loss, the backward pass and the optimizer are told of too; unless
several GPUs are in use, whose backward passes that observer is not made for.
"""
from threading import get_ident

from weir import ranges

EACH = 64
MODULES = 64  # of one name that have a count of their own


def is_due(call):
    return call % EACH == 0 or call & (call - 1) == 0


def _on_several_gpus(cuda):
    if not cuda.is_initialized():
        return False
    try:
        return sum(cuda.memory_reserved(i) > 0 for i in range(cuda.device_count())) > 1
    except RuntimeError:  # an allocator that does not count
        return True


class Sampler:
    def __init__(self, torch, observer):
        self.torch, self.observer = torch, observer
        self.reset()

    def reset(self):
        self.counts = {}  # by the number of a range: the counts of the modules of that name
        self.telling = set()  # threads with the observer that tells of shapes
        self.ending = set()  # calls that it tells of: what is called, and the thread

    def count(self, number):
        """A new outermost module's count of calls: modules that are made for one call share one."""
        counts = self.counts.setdefault(number, [])
        if len(counts) < MODULES:
            counts.append([0])
        return counts[-1]

    def begin(self, key, scope, count):
        """Before an outermost module is called, which is nearly always one call of many."""
        count[0] = call = count[0] + 1
        if not self.telling and not is_due(call):
            return
        if ranges.inside(scope):
            return
        thread = get_ident()
        if is_due(call):
            self.telling.add(thread)
            self.ending.add((key, thread))
            self.observer.switch(True)
        elif thread in self.telling:
            self._stop(thread)

    def end(self, key, scope):
        """After any module, while a call is told with shapes."""
        thread = get_ident()
        if (key, thread) not in self.ending or ranges.inside(scope):
            return
        self.ending.discard((key, thread))
        torch = self.torch
        if not torch.is_grad_enabled() or _on_several_gpus(torch.cuda):
            self._stop(thread)

    def _stop(self, thread):
        self.telling.discard(thread)
        self.observer.switch(False)
