#!/bin/sh
# PyTorch's operators and modules in recordings on a GPU.
#
#	sh tests/gpu/operators.sh BUILD [WORK]
#
# 1. What naming them costs: median host time of a forward of a TransformerEncoderLayer, in turns:
#    plain, recorded, recorded with --python=names and with --python, under torch.profiler with shapes.
#    The result must be the same number to the last digit.
# 2. OPT-125m: every operator and the shapes of its products of matrices, against torch.profiler.
# 3. Backward passes, a torch.profiler of the program's own, and torch.compile, with and without.
#
# Needs a GPU and PyTorch; transformers for 2.  Exits 1 when anything but a time is not as it should be.
set -u
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=${2:-$(mktemp -d)}
weir=$build/bin/weir
program=$here/programs/operators.py
python=${PYTHON:-python3}
failed=0
cd "$work" || exit 3

complain() {
	echo "WRONG: $*"
	failed=1
}

"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || {
	echo "no PyTorch with a GPU here"
	exit 3
}
"$python" -c 'import sys, torch; print("Python", sys.version.split()[0], "PyTorch", torch.__version__)'

# 1.
for round in 1 2 3 4 5; do
	"$python" "$program" layer >plain.$round 2>err || complain "plain: $(tail -n 1 err)"
	"$weir" record -q -o layer.weir -- "$python" "$program" layer >recorded.$round 2>err ||
		complain "recorded: $(tail -n 1 err)"
	"$weir" record -q --python=names -o names.weir -- "$python" "$program" layer >names.$round 2>err ||
		complain "names: $(tail -n 1 err)"
	"$weir" record -q --python -o shapes.weir -- "$python" "$program" layer >shapes.$round 2>err ||
		complain "shapes: $(tail -n 1 err)"
	"$python" "$program" profiler >profiler.$round 2>err || complain "profiler: $(tail -n 1 err)"
done
echo
echo "| TransformerEncoderLayer, fp16, 8 x 128 x 512 | host us a forward, median of 5 | of plain |"
echo "|---|---|---|"
plain=$(cat plain.? | awk '{ print $1 }' | sort -n | sed -n 3p)
for way in plain recorded names shapes profiler; do
	us=$(cat $way.? | awk '{ print $1 }' | sort -n | sed -n 3p)
	case $way in
	recorded) title="weir record" ;;
	names) title="weir record --python=names" ;;
	shapes) title="weir record --python (aim: 1.35)" ;;
	profiler) title="torch.profiler, shapes" ;;
	*) title=$way ;;
	esac
	echo "$title $us $plain" | awk '{ us = $(NF - 1); p = $NF; NF -= 2; printf "| %s | %s | %.2f |\n", $0, us, us / p }'
done
[ "$(cat plain.? recorded.? names.? shapes.? | awk '{ print $2 }' | sort -u | wc -l)" = 1 ] ||
	complain "results differ: $(cat plain.? shapes.? | awk '{ print $2 }' | sort -u | tr '\n' ' ')"
echo
"$weir" report -n 8 shapes.weir | sed -n '/^Operators/,/^$/p; /^Layers/,/^$/p'
"$weir" report --json --top=0 shapes.weir >shapes.json
grep -q '"TransformerEncoderLayer", "kind": "annotation", "count": 3500,' shapes.json ||
	complain "the layer is not there 3500 times"
grep -q '_transformer_encoder_layer_fwd", "kind": "operator", "count": 3500,' shapes.json ||
	complain "the fast path was not taken 3500 times: hooks must not switch it off"

# 2.
if "$python" -c 'import transformers' 2>/dev/null; then
	"$python" "$program" opt-profiler seen.json 2>err || complain "opt-profiler: $(tail -n 1 err)"
	"$weir" record -q --gpu --python -o opt.weir -- "$python" "$program" opt 2>err ||
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

# 3.
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
[ -n "${2-}" ] || rm -rf "$work"
exit $failed
