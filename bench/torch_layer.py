"""Host time of one forward of a TransformerEncoderLayer (fp16, 8 x 128 x 512), in microseconds.

    weir record -o t.weir -- python3 bench/torch_layer.py t.weir

Given the trace's name, recording is switched off and on between rounds of the one process by
storing the header's control word, and both medians are printed with their difference.
Without a name: the median of the plain program.
"""
import mmap
import statistics
import struct
import sys
import time

import torch

CONTROL = 48  # offset of the control word: docs/reference/trace-format.md
ROUNDS, FORWARDS = 200, 50


class Switch:
    """Recording, as a context: on or off."""

    def __init__(self, path):
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 4096)
        self.full = self.map[CONTROL : CONTROL + 4]

    def set(self, on):
        self.map[CONTROL : CONTROL + 4] = self.full if on else struct.pack("<I", 0)


def round_us(layer, x):
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    for _ in range(FORWARDS):
        layer(x)
    end = time.perf_counter_ns()
    torch.cuda.synchronize()
    return (end - start) / FORWARDS / 1000


def main():
    switch = Switch(sys.argv[1]) if len(sys.argv) > 1 else None
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    layer = layer.cuda().half().eval()
    x = torch.randn(8, 128, 512, device="cuda", dtype=torch.float16)
    with torch.inference_mode():
        for _ in range(20):
            round_us(layer, x)
        if not switch:
            print(f"plain {statistics.median(round_us(layer, x) for _ in range(ROUNDS)):.2f} us")
            return
        times = {False: [], True: []}
        for i in range(ROUNDS):
            for on in (False, True) if i % 2 else (True, False):
                switch.set(on)
                times[on].append(round_us(layer, x))
    off, on = statistics.median(times[False]), statistics.median(times[True])
    print(f"off {off:.2f} us, recording {on:.2f} us, added {on - off:+.2f} us ({(on / off - 1) * 100:+.2f} %)")


if __name__ == "__main__":
    main()
