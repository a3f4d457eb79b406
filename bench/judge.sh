# The worth of prediction on recorded launches: judge.sh BUILD OUT FILE...
#
# FILEs are traces (weir record --gpu --args) or tables of launches, all of one kind of device.  A
# model is trained and judged in every split; into the folder OUT go the model, what was printed, and
# the same as JSON.  No GPU is needed.  WEIR_DEVICE names the device where the files do not.
set -eu
build=$(cd "$1" && pwd)
out=$2
shift 2
mkdir -p "$out"
weir=$build/bin/weir
device=${WEIR_DEVICE:+--device=$WEIR_DEVICE}

model=$out/trained.weir-model
if "$weir" train $device --json -o "$model" "$@" >"$out/train.json"; then
	"$weir" train $device -o "$model" "$@" | tee "$out/train.txt"
	"$weir" eval $device "$model" "$@" | tee "$out/eval.txt"
	"$weir" eval $device --json "$model" "$@" >"$out/eval.json"
fi
"$weir" predict $device "$@" | tee "$out/kernels.txt" | head -n 40
