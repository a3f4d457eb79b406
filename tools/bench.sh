# The cost of recording: bench.sh BUILD.  Nanoseconds that are added to a call, beside what other
# tools add where they are installed; then a PyTorch layer; then what the library costs a program
# that uses no CUDA at all.  On the simulated driver when there is no GPU.
build=$(cd "$1" && pwd) || exit 1
root=$(cd "$(dirname "$0")/.." && pwd)
sim=
ls /dev/nvidia[0-9]* >/dev/null 2>&1 || sim=--sim
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
weir=$build/bin/weir
bench=$build/bin/bench-launch

recorded() { # ARGUMENTS…
	"$weir" record $sim --quiet --level=all -o t.weir -- "$bench" "$@" t.weir || exit 1
}

echo "one call, one thread, three runs (plain, and the median of what is added):"
for run in 1 2 3; do
	for call in launch params query current; do
		recorded -c $call
	done
done
echo
echo "a launch whose time is predicted, with CUPTI to learn from:"
for run in 1 2 3; do
	"$weir" record $sim --quiet --level=all --predict -o t.weir -- "$bench" -c params t.weir || exit 1
done
echo
echo "a launch that keeps its call stack, in the main thread and in another; one in 64:"
for how in "launch -n 40 -m" "launch -n 40"; do
	for stacks in launch launch,bytes:32K launch,sample:64; do
		printf '%-18s' "$stacks"
		"$weir" record $sim --quiet --level=all --stacks=$stacks -o t.weir -- "$bench" -c $how t.weir || exit 1
	done
done
echo "a call from Python, with its stack and without:"
for stacks in '' --stacks=sync --stacks=sync,bytes:32K; do
	printf '%-18s' "${stacks:-none}"
	"$weir" record $sim --quiet $stacks -o t.weir -- python3 "$root/bench/stacks.py" || exit 1
done
echo
echo "queries at level full, where they are counted:"
"$weir" record $sim --quiet -o t.weir -- "$bench" -c current t.weir
echo
echo "threads (cuCtxGetCurrent, each recorded):"
for threads in 1 2 4 8 16 32; do
	recorded -c current -t $threads -n 200
done

echo
echo "one NVTX range, push and pop, three runs:"
for run in 1 2 3; do
	"$weir" record $sim --quiet -o t.weir -- "$build/bin/bench-range" || exit 1
done

echo
echo "single launches, each between two readings of the clock; flight recordings when they go round (two rounds):"
launches() { # NAME ORDERS
	printf '  %-14s' "$1"
	rm -f w.weir
	LD_LIBRARY_PATH="${sim:+$build/lib/weir/sim:}${LD_LIBRARY_PATH-}" \
		LD_PRELOAD="$build/lib/weir/libweir.so" WEIR="$2" "$build/bin/bench-worst" ${2:+w.weir} || exit 1
}
for round in 1 2; do
	launches none ''
	launches recorded record:w.weir
	for size in 64 1024 3072; do
		room=$(df -Pm . | awk 'NR == 2 { print $4 }')
		[ "$room" -gt $((size + 1024)) ] || {
			echo "  flight=${size}M: skipped, the disk has room for $room MiB"
			continue
		}
		launches flight=${size}M flight=${size}M,record:w.weir
	done
	rm -f w.weir
done

echo
echo "one fork of a program that has launched, until its child is gone; memory of the child's own (five rounds):"
forked() { # HOW COMMAND...
	printf '  %-10s' "$1"
	shift
	LD_LIBRARY_PATH="${sim:+$build/lib/weir/sim:}${LD_LIBRARY_PATH-}" "$@" "$build/bin/bench-fork" || exit 1
}
for round in 1 2 3 4 5; do
	forked plain env
	forked preloaded env LD_PRELOAD="$build/lib/weir/libweir.so"
	forked recorded "$weir" record $sim --quiet -o t.weir --
done

echo
echo "one prediction:"
"$build/bin/bench-predict" || exit 1

if [ -z "$sim" ]; then
	echo
	echo "a launch under other tools, in turns with none:"
	cupti=$(find / -name 'libcupti.so*' -not -path '/proc/*' 2>/dev/null | head -n 1)
	inc=$(find / -name cupti.h -not -path '/proc/*' 2>/dev/null | head -n 1)
	cuda=$(find / -name cuda.h -path '*cuda*' -not -path '/proc/*' 2>/dev/null | head -n 1)
	gcc -shared -fPIC -O2 -I"$(dirname "$inc")" -I"$(dirname "$cuda")" -o count_kernels.so \
		"$root/tests/gpu/count_kernels.c" "$cupti" -Wl,-rpath,"$(dirname "$cupti")" 2>/dev/null
	nsys=$(command -v nsys || find /opt/nvidia -path '*linux*' -name nsys 2>/dev/null | head -n 1)
	for run in 1 2 3; do
		printf 'none             '; "$bench" -n 300
		[ -f count_kernels.so ] && { printf 'CUPTI activity   '; CUDA_INJECTION64_PATH=$work/count_kernels.so "$bench" -n 300; }
		[ -n "$nsys" ] && { printf 'Nsight Systems   '; "$nsys" profile -t cuda -s none --cpuctxsw=none -o ns$run "$bench" -n 300 2>/dev/null | grep plain; }
	done
	if python3 -c 'import torch' 2>/dev/null; then
		echo
		echo "one forward of a TransformerEncoderLayer, host time, three runs a level:"
		for run in 1 2 3; do
			for level in work full; do
				printf '%-5s ' $level
				"$weir" record --quiet --level=$level -o t.weir -- python3 "$root/bench/torch_layer.py" t.weir
			done
		done
	fi
fi

nanoseconds() {
	begin=$(date +%s%N)
	i=0
	while [ $i -lt 200 ]; do
		"$@" >/dev/null
		i=$((i + 1))
	done
	echo $((($(date +%s%N) - begin) / 200))
}

echo
echo "a program without CUDA (/bin/true), microseconds a start, five rounds:"
for round in 1 2 3 4 5; do
	plain=$(nanoseconds env /bin/true)
	with=$(nanoseconds env LD_PRELOAD="$build/lib/weir/libweir.so" WEIR=record:t.weir /bin/true)
	printf '  %5d without, %5d with libweir.so\n' $((plain / 1000)) $((with / 1000))
done

echo
echo "the law of a shared GPU:"
"$build/bin/bench-law"

echo
echo "the pool of device memory, a pair of calls:"
"$build/bin/bench-pool"

echo
echo "the batcher, 8 models of 4 classes with 1000 requests each:"
"$build/bin/bench-batch"

echo
"$build/bin/bench-wire"

if [ -z "$sim" ]; then
	echo
	echo "the driver's calls about memory:"
	"$build/bin/bench-memory"
fi
