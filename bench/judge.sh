# The worth of prediction on recorded launches: judge.sh BUILD OUT FILE...
#
# FILEs are traces (weir record --gpu --args) or tables of launches, all of one kind of device.  Both
# kinds of model are trained and judged in every split; into the folder OUT go the models, what was
# printed, and the same as JSON.  No GPU is needed.  WEIR_DEVICE names the device where the files do not.
set -eu
build=$(cd "$1" && pwd)
out=$2
shift 2
mkdir -p "$out"
weir=$build/bin/weir
device=${WEIR_DEVICE:+--device=$WEIR_DEVICE}

for kind in forest network; do
	model=$out/$kind.weir-model
	echo "== $kind"
	if ! "$weir" train $device --kind $kind --json -o "$model" "$@" >"$out/$kind.train.json"; then
		echo "$kind: no model"
		continue
	fi
	"$weir" train $device --kind $kind -o "$model" "$@" | tee "$out/$kind.train.txt"
	"$weir" eval $device "$model" "$@" | tee "$out/$kind.eval.txt"
	"$weir" eval $device --json "$model" "$@" >"$out/$kind.eval.json"
done
"$weir" predict $device "$@" | tee "$out/kernels.txt" | head -n 40
