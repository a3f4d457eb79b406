# libweirapi as programs meet it: installed, found by pkg-config, from C, C++ and Python; with weir run around it and
# without.  Examples of examples/sched are built as they say.
weir=$1 source=$2
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
sim=$build/lib/weir/sim said=$build/tests/cli/programs/said
if ! [ -e "$build/lib/weir/libweir.so" ] || ! [ -e "$said" ]; then exit 0; fi
cd "$scratch" || exit 1
echo "gpu=$scratch/device,time=real" | tr , '\n' >sim
export WEIR_SIM="@$scratch/sim" LD_LIBRARY_PATH="$sim:$build/lib"
mkdir -m 700 share run
export XDG_RUNTIME_DIR="$scratch/run"

# Requests that a program says itself, in its slot; with a recording as well.
run_said() { "$weir" run --sim --share share --class latency "$@"; }
expect 0 '^all is as it is said$' run_said --max-wait 1000s -- "$said" "$scratch/share"
expect 0 '^all is as it is said$' run_said --max-wait 1000s -o t.weir -- "$said" "$scratch/share"
expect 0 '^all is as it is said$' run_said --max-wait 20ms -- "$said" "$scratch/share" left
expect 0 '^all is as it is said$' run_said --memory 512M -- "$said" "$scratch/share" memory
expect 0 'cuDriverGetVersion' "$weir" report --top 0 t.weir
expect 1 '' sh -c '"$1" report --top 0 t.weir | grep cuMemGetInfo' sh "$weir"

# The same by ranges of NVTX, whether they are kept in a trace or not; only those of that name.
ranges="$build/tests/cli/programs/said_by_ranges"
run_ranges() { "$weir" run --sim --share share --class latency --max-wait 1000s --request range:answer "$@" "$scratch/share"; }
expect 0 '^all is as it is said$' run_ranges -- "$ranges"
expect 0 '^all is as it is said$' run_ranges -o r.weir -- "$ranges"
expect 0 'answer' "$weir" report --top 0 r.weir
expect 1 '^wrong$' "$weir" run --sim --share share --class latency --request range:other -- "$ranges" "$scratch/share"
expect 2 'range:answer, for example' "$weir" run --request answer -- "$ranges"
expect 2 'range:answer, for example' "$weir" run --request range: -- "$ranges"
expect 2 'range:answer, for example' "$weir" run --request range:a,b -- "$ranges"

# In another directory than its own the process has no slot.
expect 0 '' mkdir -m 700 other
cat >elsewhere.c <<'END'
#include <weir/sched.h>
int main(int count, char **arguments)
{
	weir_sched h;
	uint64_t request;
	return count == 2 && !weir_sched_open(arguments[1], &h) && !weir_sched_set_log_level(h, WEIR_LOG_ERRORS) ?
		weir_sched_set_policy(h, "strict") + weir_sched_request_begin(h, 0, &request) : 99;
}
END

# Installed, as packages have it.
expect 0 'sched.h' cmake --install "$build" --prefix "$scratch/installed"
[ -d installed ] || finish
export PKG_CONFIG_PATH="$(dirname "$(find "$scratch/installed" -name weirapi.pc)")"
flags=$(pkg-config --cflags --libs weirapi)
expect 0 '' cc -std=c99 -pedantic -Wall -Wextra -Werror elsewhere.c -o elsewhere $flags
expect 10 'set_policy: no program has shared a GPU in that directory' ./elsewhere other
expect 10 'set_policy: no program has' "$weir" run --sim --share share -- ./elsewhere other
expect 0 '' "$weir" run --sim --share share -- ./elsewhere share
expect 0 '' cc -std=c99 -pedantic -Wall -Wextra -Werror "$source/examples/sched/requests.c" -o requests $flags -ldl
expect 0 '^100 requests, p50 [0-9.]+ ms, p99 [0-9.]+ ms$' "$weir" run --sim --share share -- ./requests
expect 0 'no threshold: this process does not run under weir run' ./requests
for engine in scale shift; do
	expect 0 '' cc -std=c99 -pedantic -Wall -Wextra -Werror -shared -fPIC $flags "$source/examples/engine_$engine.c" -o $engine.so
done
echo '#include <weir/engine.h>' >engine.cpp
if command -v c++ >/dev/null; then
	expect 0 '' c++ -std=c++11 -pedantic -Wall -Wextra -Werror $flags -fsyntax-only engine.cpp
	expect 0 '' c++ -std=c++11 -pedantic -Wall -Wextra -Werror "$source/examples/sched/throughput.cpp" \
		-o throughput $flags -ldl
	expect 0 '^class best-effort, 0 launches waited$' "$weir" run --sim --share share --class latency -- ./throughput
	expect 0 'throughput: this process does not run under weir run' ./throughput
fi
if command -v python3 >/dev/null; then
	cat >watched.py <<END
import os, subprocess, sys
said = subprocess.Popen(["$weir", "run", "--sim", "--share", "share", "--class", "latency", "--memory", "512M", "--", "python3", "-c", '''
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096))
for i in range(10):
    cuda.cuMemsetD8_v2(memory, 0, ctypes.c_size_t(4096))
    cuda.cuMemsetD8Async(memory, 0, ctypes.c_size_t(4096), None)
    cuda.cuCtxSynchronize()
print("ready", flush=True)
sys.stdin.read()
'''], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
said.stdout.readline()
code = subprocess.call(["python3", "$source/examples/sched/watch.py", "share"])
said.stdin.close()
sys.exit(code or said.wait())
END
	expect 0 '^process [0-9]+: latency, [0-9]+ requests, p99 [0-9.]+ ms, GPU 0 [0-9.]+ MiB of 512[.]0 MiB, [0-9]+ allocations by the driver, p99 [0-9]+ us$' python3 watched.py
	expect 1 'no program has shared a GPU' python3 "$source/examples/sched/watch.py" other
fi
finish
