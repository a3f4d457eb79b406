"""The cost of a call stack to a Python program: microseconds of a call of cuCtxSynchronize, 12
functions deep.

    weir record [--stacks=sync] -o t.weir -- python3 bench/stacks.py
"""
import ctypes
import statistics
import time

CALLS, ROUNDS, DEPTH = 200, 50, 12

cuda = ctypes.CDLL("libcuda.so.1")


def run():
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        cuda.cuCtxSynchronize()
    return (time.perf_counter_ns() - begin) / CALLS / 1000


def descend(depth):
    return descend(depth - 1) if depth else run()


def main():
    context = ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context):
        raise SystemExit("there is no CUDA")
    times = sorted(descend(DEPTH) for _ in range(ROUNDS))
    print("python   median %.2f us a call, quartiles %.2f %.2f" %
          (statistics.median(times), times[ROUNDS // 4], times[ROUNDS * 3 // 4]))


main()
