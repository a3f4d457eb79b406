#!/bin/sh
# Eight programs, each plain, under --gpu, --gpu=predict, Nsight Systems and torch.profiler in turns: the least of three
# rounds, in seconds.  And how well --gpu=predict does, in one run that times all both ways: what compare-reconstruction says.
#
#	sh tests/gpu/timeline.sh BUILD [WORK] [PROGRAM...]
#
# Needs a GPU, CUPTI and PyTorch; programs that need more (transformers, torchvision, JAX, CuPy, two GPUs) are left out where that is
# missing, and so is nsys.  Exits 1 when a timeline is further off than the bounds of compare-reconstruction.
set -u
build=$(cd "$1" && pwd)
work=${2:-$(mktemp -d)}
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 2 ] && shift 2 || set -- llama resnet unet jax cupy graph streams ddp
weir=$build/bin/weir
python=${PYTHON:-python3}
program=$here/programs/timeline.py
failed=0

seconds() { # COMMAND...
	"$@" 2>"$work/err" | sed -n 's/^seconds //p' | tail -n 1
}
one() { # HOW NAME
	case $1 in
	plain) seconds "$python" "$program" "$2" ;;
	gpu) seconds "$weir" record -q --gpu -o "$work/$2.gpu.weir" -- "$python" "$program" "$2" ;;
	predict) seconds "$weir" record -q --gpu=predict -o "$work/$2.predict.weir" -- "$python" "$program" "$2" ;;
	nsys) seconds nsys profile -t cuda -s none -f true -o "$work/$2" "$python" "$program" "$2" ;;
	profiler) seconds "$python" "$program" "$2" profile ;;
	esac
}
least() { # FILE
	sort -n "$1" 2>/dev/null | head -n 1
}

ways="plain gpu predict profiler"
command -v nsys >/dev/null && ways="$ways nsys"
printf '%-10s' program
for way in $ways; do printf ' %10s' "$way"; done
printf '\n'
for name in "$@"; do
	"$python" "$program" "$name" >"$work/$name.out" 2>&1 || {
		printf '%-10s left out: %s\n' "$name" "$(tail -n 1 "$work/$name.out")"
		continue
	}
	rm -f "$work/$name".*.seconds
	for round in 1 2 3; do
		for way in $ways; do
			one "$way" "$name" >>"$work/$name.$way.seconds"
		done
	done
	printf '%-10s' "$name"
	for way in $ways; do printf ' %10s' "$(least "$work/$name.$way.seconds")"; done
	printf '\n'
done

echo
for name in "$@"; do
	trace=$work/$name.both.weir
	rm -f "$trace"
	grep -q '^seconds' "$work/$name.out" || continue
	LD_PRELOAD=$build/lib/weir/libweir.so WEIR=gpu=predict:32,window=4000000000,args,record:$trace \
		"$python" "$program" "$name" >/dev/null 2>"$work/err"
	"$build/tests/compare-reconstruction" -r 32 -w 1024 "$trace" >"$work/said" || failed=1
	tail -n +2 "$work/said"
done
exit $failed
