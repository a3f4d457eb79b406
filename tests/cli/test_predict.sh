# Times that are predicted at the launch, on the simulated driver and a CUPTI that a test program
# tells what ran: learnt in the run, from a trace, from what an earlier run has left.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
program=$build/tests/cli/programs/predicted
[ -e "$build/lib/weir/libweir.so" ] && [ -e "$build/lib/weir/sim/libcuda.so.1" ] || exit 0
[ -x "$program" ] || exit 0
cd "$scratch" || exit 1

# value TRACE PATH: a number of the report's prediction.
value() {
	"$weir" report --json "$1" | python3 -c '
import json, sys
at = json.load(sys.stdin)["prediction"]
for key in sys.argv[1].split("."):
    at = at[int(key) if key.isdigit() else key]
print(at)' "$2"
}

same() { # WHAT IS WANTED
	[ "$2" = "$3" ] && return
	echo "FAILED: $1 is $2, expected $3"
	failures=$((failures + 1))
}

below() { # WHAT IS LIMIT
	awk -v x="$2" -v most="$3" 'BEGIN { exit !(x != "" && x < most) }' && return
	echo "FAILED: $1 is $2, expected less than $3"
	failures=$((failures + 1))
}

# The first launch of each scalar can't be told; the second was seen once; all others are known, and
# each scalar has a time of its own.
expect 0 '^$' "$weir" record --sim -q --predict -o p.weir -- "$program" 20
same 'launches' "$(value p.weir launches)" 76
same 'launches without a prediction' "$(value p.weir unpredicted)" 4
same 'measured' "$(value p.weir measured)" 76
same 'best predictor' "$(value p.weir predictors.0.predictor)" exact
same 'launches of it' "$(value p.weir predictors.0.launches)" 72
below 'its error' "$(value p.weir predictors.0.error_p90)" 0.01
same 'once' "$(value p.weir predictors.1.launches)" 4
same 'kernel' "$(value p.weir kernels.0.kernel)" scale
expect 0 'Predicted times' "$weir" report p.weir
expect 0 '72 +0\.[0-9] % .* exact' "$weir" report p.weir

# Times that change are followed.
expect 0 '^$' "$weir" record --sim -q --predict -o slow.weir -- "$program" 60 130
expect 0 'exact' "$weir" report slow.weir
below 'the error when times change' "$(value slow.weir all.error_p90)" 0.05

# Nobody asks CUPTI for what ran: it hands over full buffers, and they are small enough for that.
again=$build/examples/problems/sync_in_loop
expect 0 '^$' sh -c "$weir record --sim -q --predict -o loop.weir -- $again >/dev/null"
below 'what could not be told in a loop' "$(value loop.weir unpredicted)" 100
same 'predictor in a loop' "$(value loop.weir predictors.0.predictor)" exact
below 'its launches' 1800 "$(value loop.weir predictors.0.launches)"

# A graph is told as a whole, when it ran before as it is.
for name in graph1 graph2; do
	expect 0 '^$' sh -c "$weir record --sim -q --history graphs -o $name.weir -- $build/examples/vecadd >/dev/null"
done
same 'whole graphs' "$(value graph2.weir graphs.launches)" 20
below 'their error' "$(value graph2.weir graphs.error_p90)" 0.01
below 'graphs that could not be told' "$(value graph2.weir unpredicted)" "$(value graph1.weir unpredicted)"
expect 0 'from the first kernel to the last' "$weir" report graph2.weir

# A run that begins with a trace, or with what another has left, knows all of it at once.
expect 0 '^$' "$weir" record --sim -q --predict --history p.weir -o warm.weir -- "$program" 5
same 'launches without a prediction after a trace' "$(value warm.weir unpredicted)" 0
same 'predictor after a trace' "$(value warm.weir predictors.0.launches)" 20
[ -z "$(ls "${TMPDIR:-/tmp}"/weir-scratch-* 2>/dev/null)" ] || same 'what was made of it' there gone
expect 0 '^$' "$weir" record --sim -q --history left -o first.weir -- "$program" 5
[ -s left ] || same 'what the run has left' nothing something
expect 0 '^$' "$weir" record --sim -q --history left -o second.weir -- "$program" 5
same 'launches without a prediction of the first' "$(value first.weir unpredicted)" 4
same 'launches without a prediction of the second' "$(value second.weir unpredicted)" 0

# Another GPU of the same kind takes it for first guesses, until each launch has run there.
on() { # NUMBER OF UUID, HISTORY, TRACE
	expect 0 '^$' env WEIR_SIM=$1 "$weir" record --sim -q --history $2 -o $3 -- "$program" 5
}
guesses='what is taken are first guesses, .*another device of this kind'
expect 1 '^$' sh -c "$weir report second.weir | grep 'first guesses'"
cp left kin
on uuid=7 kin kin.weir
expect 0 "$guesses" "$weir" report kin.weir
same 'launches without a prediction on another device' "$(value kin.weir unpredicted)" 0
same 'guesses' "$(value kin.weir predictors.1.predictor) $(value kin.weir predictors.1.launches)" 'once 8'
same 'its own' "$(value kin.weir predictors.0.predictor) $(value kin.weir predictors.0.launches)" 'exact 12'
on uuid=7 kin kin2.weir
same 'known on the second run' "$(value kin2.weir predictors.0.launches)" 20
on devices=2 kin both.weir
expect 0 "$guesses" "$weir" report both.weir
on devices=2 kin both2.weir
same 'known to both' "$(value both2.weir predictors.0.launches)" 20
on uuid=0 p.weir same.weir
same 'known from a trace of the same' "$(value same.weir predictors.0.launches)" 20
on uuid=1 p.weir other1.weir
expect 0 "$guesses" "$weir" report other1.weir

# An unusable file is named, and the program runs.
cp left bad
printf 'xxxx' | dd of=bad bs=1 seek=5000 conv=notrunc 2>/dev/null
expect 0 '^$' "$weir" record --sim -q --history bad -o bad.weir -- "$program" 5
expect 0 'nothing is taken from .*damaged' "$weir" report bad.weir

# The model for the device is taken from those that come with Weir; kernels that are new are then
# told.
expect 0 'no model is in use: none is for this device in .*/models' "$weir" report p.weir
expect 0 '^$' env "WEIR_SIM=name=NVIDIA H200" "$weir" record --sim -q --predict -o h200.weir -- \
	"$program" 5
expect 0 'the model is in use, .*/models/h200.weir-model: it fits' "$weir" report h200.weir
same 'launches without a prediction with a model' "$(value h200.weir unpredicted)" 0
printf 'no model' >model
expect 0 '^$' "$weir" record --sim -q --predict=model -o model.weir -- "$program" 5
expect 0 'the model is refused, .*: this is not a model' "$weir" report model.weir
expect 2 'no-such' "$weir" record --sim -q --predict=no-such -o model.weir -- "$program" 5
expect 2 'comma' "$weir" record --sim -q --history a,b -o model.weir -- "$program" 5
expect 0 '^$' "$weir" import -q -o other.weir "$2/tests/golden/kineto/eager.json"
expect 0 '^$' "$weir" record --sim -q --history other.weir -o other2.weir -- "$program" 5
expect 0 'learnt on another kind of device' "$weir" report other2.weir
expect 0 '^$' "$weir" record --sim -q -o plain.weir -- "$program" 5
expect 2 'does not name its devices' "$weir" record --sim -q --history plain.weir \
	-o x.weir -- "$program" 5
finish
