"""Leaks as leaking.c does, from Python: a method, a generator, a function that C calls."""
import ctypes
import functools
import threading

cuda = ctypes.CDLL("libcuda.so.1")


class Cache:
    def __init__(self):
        self.kept = []

    def put(self, size):
        at = ctypes.c_uint64()
        cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size))  # LINE put
        self.kept.append(at.value)


def größer(cache):
    for n in range(3):
        cache.put(1 << 20)  # LINE größer
        yield n


def fold(total, n):
    cuda.cuCtxSynchronize()  # LINE fold
    return total + n


def main():
    context = ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
    cache = Cache()
    functools.reduce(fold, größer(cache), 0)  # LINE main

    def in_thread():
        cuda.cuCtxSetCurrent(context)
        cache.put(1 << 16)  # LINE in_thread

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()


main()
