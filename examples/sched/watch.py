"""Shows the programs that share the GPU and how each fares, through libweirapi: watch.py
[DIRECTORY]."""
import ctypes
import sys

try:
    library = ctypes.CDLL("libweirapi.so.1")
except OSError as why:
    sys.exit(f"watch.py: {why}; LD_LIBRARY_PATH may say where it is")
library.weir_sched_strerror.restype = ctypes.c_char_p


class Metrics(ctypes.Structure):
    """struct weir_sched_metrics of include/weir/sched.h."""
    _fields_ = [("size", ctypes.c_size_t), ("valid", ctypes.c_uint32), ("sched_class", ctypes.c_uint32)]
    _fields_ += [(name, ctypes.c_uint64) for name in (
        "queue_wait_count", "queue_wait_mean_ns", "queue_wait_p95_ns", "queue_wait_p99_ns", "queue_wait_expired",
        "capped_count")]
    _fields_ += [("predicted_residency_share", ctypes.c_double), ("prediction_error", ctypes.c_double)]
    _fields_ += [(name, ctypes.c_uint64) for name in (
        "prediction_measured_ns", "request_count", "request_p50_ns", "request_p95_ns", "request_p99_ns")]


class Memory(ctypes.Structure):
    """struct weir_sched_memory of it."""
    _fields_ = [("size", ctypes.c_size_t), ("gpu_uuid", ctypes.c_uint8 * 16)]
    _fields_ += [(name, ctypes.c_uint64) for name in (
        "used", "contexts", "idle", "pool_spare", "given_away", "wanted", "quota", "quota_left", "group_used",
        "group_peak", "refused_count", "pool_hit_count", "driver_alloc_count", "driver_alloc_p50_ns",
        "driver_alloc_p99_ns")]


QUEUE_WAIT, RESIDENCY, PREDICTION, REQUESTS = 1, 2, 4, 8
CLASSES = {1: "latency", 2: "best-effort"}


def check(status):
    if status:
        sys.exit("watch.py: " + library.weir_sched_strerror(status).decode())


def processes(weir):
    count = ctypes.c_size_t()
    pids = (ctypes.c_uint32 * 256)()
    check(library.weir_sched_get_processes(weir, pids, ctypes.c_size_t(len(pids)), ctypes.byref(count)))
    return pids[:min(count.value, len(pids))]


def describe(pid, m):
    words = [f"process {pid}: {CLASSES[m.sched_class]}"]
    if m.valid & REQUESTS:
        words.append(f"{m.request_count} requests, p99 {m.request_p99_ns / 1e6:.3f} ms")
    if m.valid & QUEUE_WAIT:
        words.append(f"{m.queue_wait_count} launches waited {m.queue_wait_mean_ns / 1e3:.0f} us each")
    if m.valid & RESIDENCY:
        words.append(f"{100 * m.predicted_residency_share:.0f} % of the predicted device time")
    if m.valid & PREDICTION:
        words.append(f"predictions {100 * m.prediction_error:.0f} % off")
    return words


def memory_of(weir, pid):
    """The memory of the program and its group on each GPU, if there is a quota."""
    m = Memory(size=ctypes.sizeof(Memory))
    for gpu in range(16):
        if library.weir_sched_get_memory(weir, ctypes.c_uint32(pid), ctypes.c_uint32(gpu), ctypes.byref(m)):
            return
        if m.quota:
            yield f"GPU {gpu} {m.group_used / 2**20:.1f} MiB of {m.quota / 2**20:.1f} MiB"
        if m.refused_count:
            yield f"{m.refused_count} allocations refused"
        if m.driver_alloc_count:
            yield f"{m.driver_alloc_count} allocations by the driver, p99 {m.driver_alloc_p99_ns / 1e3:.0f} us"


def main():
    weir = ctypes.c_uint64()
    directory = sys.argv[1].encode() if len(sys.argv) > 1 else None
    check(library.weir_sched_open(directory, ctypes.byref(weir)))
    for pid in processes(weir):
        m = Metrics(size=ctypes.sizeof(Metrics))
        if not library.weir_sched_get_metrics(weir, ctypes.c_uint32(pid), ctypes.byref(m)):
            print(", ".join([*describe(pid, m), *memory_of(weir, pid)]))
    check(library.weir_sched_close(weir))


main()
