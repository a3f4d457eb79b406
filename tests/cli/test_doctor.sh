# The answers of weir doctor about this machine and programs.
weir=$1
. "$(dirname "$0")/expect.sh"
"$weir" help doctor >/dev/null 2>&1 || exit 0

lib=$(dirname "$weir")/../lib/weir
[ -e "$lib/libweir.so" ] && [ -e "$lib/sim/libcuda.so.1" ] || exit 0

expect 0 'ok +installed +the build folder, /' "$weir" doctor --sim
expect 0 'ok +microhttpd +(libmicrohttpd.so.12, for weir monitor|none: weir monitor can.t serve[.] libmicro.* is missing)' "$weir" doctor --sim
expect 0 'ok +devices +1: Weir simulated GPU' "$weir" doctor --sim
expect 0 'ok +model +none for this device' "$weir" doctor --sim
expect 0 'ok +model +.*/models/h200.weir-model' env "WEIR_SIM=name=NVIDIA H200" "$weir" doctor --sim
expect 0 '"can_record": true' "$weir" doctor --sim --json
expect 0 'ok +cupti +.*sim/libcupti' "$weir" doctor --sim
expect 0 'ok +python +.*/python, for weir record' "$weir" doctor --sim
expect 0 '(ok +libdw +libdw.so.1, for weir record --stacks|warn +libdw +none: call stacks .*Install elfutils)' "$weir" doctor --sim
mkdir "$scratch/broken" && echo none >"$scratch/broken/libdw.so.1" # what is found there is no library
expect 0 'warn +libdw +none: call stacks .*[.] Install elfutils. library' env LD_LIBRARY_PATH="$scratch/broken" "$weir" doctor --sim
echo none >"$scratch/broken/libmicrohttpd.so.12"
expect 0 'ok +microhttpd +none: weir monitor can.t serve[.] libmicrohttpd.so.12 is missing[.] Install it' env LD_LIBRARY_PATH="$scratch/broken" "$weir" doctor --sim
# Copied as `make install` does, it is installed there.
mkdir -p "$scratch/prefix/bin" && cp "$weir" "$scratch/prefix/bin" && cp -r "$lib" "$scratch/prefix/lib-weir" &&
	mkdir "$scratch/prefix/lib" && mv "$scratch/prefix/lib-weir" "$scratch/prefix/lib/weir"
expect 0 "ok +installed +make install, $scratch/prefix" "$scratch/prefix/bin/weir" doctor --sim
if [ -e "$lib/libonnxruntime.so.1" ]; then
	expect 0 'ok +engines +for weir serve: ONNX Runtime [0-9.]+, /.*/lib/weir/libonnxruntime.so.1; PyTorch AOTInductor .*; CUDA driver 13.0 on Weir simulated GPU; .*synthetic' "$weir" doctor --sim
else
	expect 0 '(warn +engines +for weir serve: ONNX Runtime is not installed: .*`make onnxruntime` fetches it|ok +engines .*ONNX Runtime [0-9.]+, /)' "$weir" doctor --sim
fi
expect 0 'warn +nvtx +ranges go to other.so' env NVTX_INJECTION64_PATH=other.so "$weir" doctor --sim
expect 3 'no +recorded +no CUDA call was seen' "$weir" doctor --sim -- true
expect 3 'no +file +no-such-program: No such file' "$weir" doctor --sim -- no-such-program
expect 3 'is it spelled right' "$weir" doctor --sim -- ./no-such-program

printf '\177ELF garbage' >"$scratch/elf" && chmod +x "$scratch/elf"
expect 3 'is not a program' "$weir" doctor --sim -- "$scratch/elf"
head -c 100 "$weir" >"$scratch/cut" && chmod +x "$scratch/cut"
expect 3 'nothing can be loaded' "$weir" doctor --sim -- "$scratch/cut"
printf '#!/bin/sh\nexit 0\n' >"$scratch/script" && chmod +x "$scratch/script"
expect 3 'is a script for /bin/sh' "$weir" doctor --sim -- "$scratch/script"
cp "$weir" "$scratch/setuid" && chmod 4755 "$scratch/setuid"
expect 3 'the dynamic linker ignores LD_PRELOAD' "$weir" doctor --sim -- "$scratch/setuid"

# A program that was cut short is looked at without harm.
for n in 1 2 16 63 64 65 120 500 1000 5000; do
	head -c $n "$weir" >"$scratch/cut" && chmod +x "$scratch/cut"
	expect 3 'no +(file|recorded)' "$weir" doctor --sim -- "$scratch/cut"
done
finish
