#!/bin/sh
# PyTorch's operators and modules in recordings on a GPU.
#
#	sh tests/gpu/operators.sh BUILD [WORK]
#
# 1. The cost of naming them: median host time of a forward of a TransformerEncoderLayer, in turns:
# #    plain, recorded, recorded with --python=names, --python and --python=shapes, under
# torch.profiler #    with shapes.  The result must be the same number to the last digit. 2.
# OPT-125m: every operator and the shapes of its products of matrices, against torch.profiler. 3.
# Backward passes, a torch.profiler of the program's own, and torch.compile, with and without.
#
# 4. The cost of PyTorch's observers, in turns inside one recorded process.
#
# ROUNDS in the environment: turns of 1, 5 of them if it is not said; PARTS: which of these, 1234 if it is
# not said.  Needs a GPU and PyTorch; transformers for 2.  Exits 1 when anything but a time is not as it should be.
set -u
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=${2:-$(mktemp -d)}
weir=$build/bin/weir
program=$here/programs/operators.py
python=${PYTHON:-python3}
rounds=${ROUNDS:-5}
parts=${PARTS:-1234}
failed=0
mkdir -p "$work" && cd "$work" || exit 3

complain() {
	echo "WRONG: $*"
	failed=1
}

"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || {
	echo "no PyTorch with a GPU here"
	exit 3
}
"$python" -c 'import sys, torch; print("Python", sys.version.split()[0], "PyTorch", torch.__version__)'

turns() {
	awk '{ print $1 }' "$1".[0-9]* | sort -n
}

# 1.
time_layer() {
	for round in $(seq "$rounds"); do
		"$python" "$program" layer >plain.$round 2>err || complain "plain: $(tail -n 1 err)"
		"$weir" record -q -o layer.weir -- "$python" "$program" layer >recorded.$round 2>err ||
			complain "recorded: $(tail -n 1 err)"
		"$weir" record -q --python=names -o names.weir -- "$python" "$program" layer >names.$round 2>err ||
			complain "names: $(tail -n 1 err)"
		"$weir" record -q --python -o python.weir -- "$python" "$program" layer >python.$round 2>err ||
			complain "python: $(tail -n 1 err)"
		"$weir" record -q --python=shapes -o shapes.weir -- "$python" "$program" layer >shapes.$round 2>err ||
			complain "shapes: $(tail -n 1 err)"
		"$python" "$program" profiler >profiler.$round 2>err || complain "profiler: $(tail -n 1 err)"
	done
	echo
	echo "| TransformerEncoderLayer, fp16, 8 x 128 x 512 | host us a forward, median of $rounds | of plain | least | of plain |"
	echo "|---|---|---|---|---|"
	plain=$(turns plain | sed -n $(((rounds + 1) / 2))p) plain_least=$(turns plain | sed -n 1p)
	for way in plain recorded names python shapes profiler; do
		us=$(turns $way | sed -n $(((rounds + 1) / 2))p) least=$(turns $way | sed -n 1p)
		case $way in
		recorded) title="weir record" ;;
		names) title="weir record --python=names" ;;
		python) title="weir record --python (aim: 1.35)" ;;
		shapes) title="weir record --python=shapes" ;;
		profiler) title="torch.profiler, shapes" ;;
		*) title=$way ;;
		esac
		awk -v t="$title" -v us="$us" -v p="$plain" -v l="$least" -v lp="$plain_least" 'BEGIN {
			printf "| %s | %.1f | %.2f | %.1f | %.2f |\n", t, us, us / p, l, l / lp }'
	done
	[ "$(cat plain.[0-9]* recorded.[0-9]* names.[0-9]* python.[0-9]* shapes.[0-9]* | awk '{ print $2 }' | sort -u | wc -l)" = 1 ] ||
		complain "results differ: $(cat plain.[0-9]* python.[0-9]* shapes.[0-9]* | awk '{ print $2 }' | sort -u | tr '\n' ' ')"
	echo
	"$weir" report -n 8 python.weir | sed -n '/^Operators/,/^$/p; /^Layers/,/^$/p'
	for way in names python shapes; do
		"$weir" report --json --top=0 $way.weir >$way.json
		grep -q '"TransformerEncoderLayer", "kind": "annotation", "count": 3500,' $way.json ||
			complain "$way: the layer is not there 3500 times"
		grep -q '_transformer_encoder_layer_fwd", "kind": "operator", "count": 3500,' $way.json ||
			complain "$way: the fast path was not taken 3500 times: hooks must not switch it off"
	done
	# The calls 1, 2, 4, 8, 16, 32 and 64, and each 64th up to 3500.
	"$weir" export -f chrome -o python_layer.json python.weir
	told=$(grep -o '"name": *"aten::_transformer_encoder_layer_fwd"[^}]*Input Dims' python_layer.json | wc -l)
	[ "$told" = 60 ] || complain "shapes of $told forwards are told, not of 60"
	"$weir" export -f chrome -o names_layer.json names.weir
	! grep -q '"External id"' names_layer.json || echo "note: this PyTorch's names come through NVTX, not ITT"
}

# 2.
compare_opt() {
	if "$python" -c 'import transformers' 2>/dev/null; then
		"$python" "$program" opt-profiler seen.json 2>err || complain "opt-profiler: $(tail -n 1 err)"
		"$weir" record -q --gpu --python=shapes -o opt.weir -- "$python" "$program" opt 2>err ||
			complain "opt: $(tail -n 1 err)"
		"$weir" export -f chrome -o opt.json opt.weir
		echo
		echo "OPT-125m:"
		"$python" "$here/programs/compare_operators.py" opt.json seen.json || complain "OPT-125m"
		"$weir" report -n 12 opt.weir | sed -n '/^Operators/,/^$/p; /^Layers/,/^$/p'
		"$weir" report --json --top=0 opt.weir >opt_report.json
		grep -q '"model.decoder.layers.11.self_attn.q_proj (Linear)", "kind": "annotation"' opt_report.json ||
			complain "no path of a module of OPT-125m"
		grep -q '"device_total_ns": [1-9]' opt_report.json || complain "no operator has device time"
		"$weir" report opt.weir | sed -n '/^Warnings/,/^$/p'
	else
		echo "transformers is not installed: OPT-125m left out"
	fi
}

# 3.
compare_programs() {
	for mode in train compile; do
		"$python" "$program" $mode >$mode.plain 2>err || complain "$mode: $(tail -n 1 err)"
		"$weir" record -q --python -o $mode.weir -- "$python" "$program" $mode >$mode.recorded 2>err ||
			complain "$mode, recorded: $(tail -n 1 err)"
		cmp -s $mode.plain $mode.recorded || complain "$mode: $(cat $mode.plain) without, $(cat $mode.recorded) with"
	done
	"$weir" report --json --top=0 train.weir >train.json
	grep -q 'AddmmBackward0' train.json || complain "the backward pass has no operators"
	grep -q '"Optimizer.step#SGD.step", "kind": "annotation"' train.json || complain "no annotation of PyTorch's own"
	echo
	echo "train:   $(cat train.recorded)"
	echo "compile: $(cat compile.recorded)"
}

# 4.  The observer for ITT asks for a library when PyTorch is imported.
compare_observers() {
	echo
	echo "| observer | host us a forward, median of 40 | least |"
	echo "|---|---|---|"
	INTEL_LIBITTNOTIFY64=$build/lib/weir/libweir.so "$weir" record -q -o observers.weir -- \
		"$python" "$program" observers 2>err || complain "observers: $(tail -n 1 err)"
}

case $parts in *1*) time_layer ;; esac
case $parts in *2*) compare_opt ;; esac
case $parts in *3*) compare_programs ;; esac
case $parts in *4*) compare_observers ;; esac
[ -n "${2-}" ] || rm -rf "$work"
exit $failed
