# Sourced after tests/cli/expect.sh: try_weir COMMAND... says what must work of a Weir, however it was installed, on a
# system that may have no compiler: it is asked for its version, records, reports, runs and, if there is openat2, serves.  In
# $scratch.
cat >"$scratch/program.py" <<'EOF'
import ctypes
find = ctypes.CDLL(None).dlsym # in the whole program, which has no driver yet
find.restype = ctypes.c_void_p
assert not find(None, b"cuInit")
load = ctypes.CDLL(None).dlmopen
load.argtypes, load.restype = (ctypes.c_long, ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
assert load(-1, b"libm.so.6", 2)
cuda = ctypes.CDLL("libcuda.so.1")
memory = ctypes.c_void_p()
context = ctypes.c_void_p()
for result in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context),
               cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)), cuda.cuMemFree_v2(memory)):
    assert result == 0
EOF
cat >"$scratch/ask.py" <<'EOF'
import json, sys, urllib.request
model = "%s/v2/models/%s" % tuple(sys.argv[1:3])
said = json.load(urllib.request.urlopen(model))["inputs"][0]
shape = [1] + said["shape"][1:]
count = 1
for n in shape:
    count *= n
asked = {"inputs": [{"name": said["name"], "datatype": "FP32", "shape": shape, "data": [.5] * count}]}
print(json.load(urllib.request.urlopen(model + "/infer", json.dumps(asked).encode()))["outputs"][0]["data"])
EOF
mkdir -p "$scratch/models/pictures/1"
echo 'backend: "synthetic"' >"$scratch/models/pictures/config.pbtxt"
cat >"$scratch/models/pictures/1/model.json" <<'EOF'
{ "inputs": [{ "name": "X", "datatype": "FP32", "shape": [1, 4] }],
  "outputs": [{ "name": "Y", "datatype": "FP32", "shape": [1, 4] }], "us": 1000 }
EOF
export PYTHONDONTWRITEBYTECODE=1

# Serves $scratch/models with the options of $serve_options, and asks each model.
try_serve() {
	: >"$scratch/said"
	"$@" serve --listen 127.0.0.1:0 --drain-delay=0 ${serve_options-} "$scratch/models" >"$scratch/said" 2>&1 &
	server=$!
	until to=$(grep -o 'ready at http://[0-9.:]*' "$scratch/said"); do
		kill -0 $server 2>/dev/null || break
		sleep .05
	done
	expect 0 '^ready at http' cat "$scratch/said"
	for model in "$scratch"/models/*; do
		expect 0 '^\[[0-9.]+, ' python3 "$scratch/ask.py" "${to#ready at }" "$(basename "$model")"
	done
	kill $server 2>/dev/null
	wait $server
}

try_weir() {
	rm -f "$scratch/x.weir"
	cd "$scratch" || exit 1
	expect 0 '^weir [0-9.]+$' "$@" version
	expect 0 '^ok +guest' "$@" doctor --sim
	expect 0 '' "$@" record --sim -q -o x.weir -- python3 program.py
	expect 0 ' cuMemAlloc_v2$' "$@" report x.weir
	expect 0 '' "$@" record --sim --gpu -q -o y.weir -- python3 program.py
	expect 0 ' cuMemAlloc_v2$' "$@" stat --sim -- python3 program.py
	expect 0 '' "$@" run --sim -- python3 program.py
	[ -n "${NO_OPENAT2-}" ] || try_serve "$@"
}
