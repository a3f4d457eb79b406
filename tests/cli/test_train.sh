# Training, judging and asking: what is said when all is well, and of files and questions that make
# no sense.
weir=$1 source=$2
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
cd "$scratch" || exit 1
"$build/tests/gen-launches" 3000 >l.csv || exit 1
"$build/tests/gen-launches" 30 >few.csv
sed 's/,9\.0,132,NVIDIA H200,/,9.0,132,,/' l.csv >nameless.csv
sed 's/,9\.0,132,NVIDIA H200,/,8.0,108,NVIDIA A100-SXM4-80GB,/' l.csv >a100.csv
cut -d, -f1-28 l.csv >timeless.csv
one="$weir predict -d H200 -k my_gemm -g 128 -b 256"

# models
expect 0 'the model +[0-9.]+/[0-9.]+ +[0-9.]+/[0-9.]+' "$weir" train l.csv -o m.weir-model
expect 0 '"file": "m.weir-model"' "$weir" train --json l.csv -o m.weir-model
[ -e m.weir-model.part ] && { echo "FAILED: something is left beside the model"; failures=1; }
expect 2 '[0-9]+ different launches with a device time, and 40 are needed' "$weir" train few.csv
expect 2 "don't name the device. Give --device" "$weir" train nameless.csv
expect 0 'n.weir-model is written' "$weir" train -d H200 nameless.csv -o n.weir-model
expect 2 'ran on another device|another device than those before' "$weir" train l.csv a100.csv
expect 2 "has no launch with a time" "$weir" train timeless.csv
expect 2 'nothing is known of a device .Voodoo.' "$weir" train -d Voodoo nameless.csv
expect 2 "no/such.csv can't be read: No such file" "$weir" train no/such.csv
expect 2 "column 'kernel'" "$weir" train "$0"
expect 2 'FILE is missing' "$weir" train
expect 3 "can't be written: No such file" "$weir" train l.csv -o no/such.weir-model

# what they are worth
expect 0 'exact +[0-9,]+ +[0-2]\.[0-9]/[0-9]+ ' "$weir" eval m.weir-model l.csv -s prequential
expect 0 'shape, of 8 or more +[0-9,]+ +[0-9.]+/' "$weir" eval m.weir-model l.csv -s prequential
expect 0 'regret of shortest first, % +weir +last' "$weir" eval m.weir-model l.csv -s prequential
expect 0 '"shape_of_8": \{' "$weir" eval m.weir-model l.csv -s prequential --json
expect 0 '"shortest_first_regret": 0\.' "$weir" eval m.weir-model l.csv -s prequential --json
expect 0 '"t90_coverage": 0\.' "$weir" eval m.weir-model l.csv -s prequential --json
expect 0 'kernel: kernels never seen' "$weir" eval m.weir-model l.csv -s kernel
expect 0 'sibling: kernels never seen, but siblings' "$weir" eval m.weir-model l.csv -s sibling --known
expect 0 '10 to 100 us' "$weir" eval m.weir-model l.csv -s prequential --from 10000 -f gemm
expect 2 '--family=no-tea: there is no such family' "$weir" eval m.weir-model l.csv -f no-tea
expect 2 '--from=soon: give a whole number' "$weir" eval m.weir-model l.csv --from soon
expect 2 '--split=half: there are' "$weir" eval m.weir-model l.csv -s half
expect 2 'not a model' "$weir" eval l.csv l.csv
expect 2 'model is for NVIDIA H200 .*8\.0 and 108 SMs' "$weir" eval m.weir-model a100.csv
head -c 500 m.weir-model >short.weir-model
expect 2 'not a model|cut short' "$weir" eval short.weir-model l.csv
tr '\000' '\001' <m.weir-model >bad.weir-model
expect 2 'bad.weir-model: ' "$weir" predict -m bad.weir-model -d H200 -k x -g 1 -b 32

# one launch
expect 0 'predictor +bound: ' $one -m none --flops 2e9 --bytes 1e7
expect 0 'bound +[0-9.]+ us, by bytes and FLOPs' $one --flops 2e9 --bytes 1e7
expect 0 'order of magnitude' $one -m none
expect 0 'predictor +cold: ' $one --flops 2e9 --bytes 1e7
expect 0 'predictor +cold: ' $one -m m.weir-model --flops 2e9 --bytes 1e7
expect 0 '"predictor": "cold"' $one -m m.weir-model --flops 2e9 --bytes 1e7 --json
expect 0 'occupancy +1 +share of the SM' $one --features
gemm="$weir predict l.csv -k sgemm_a_tile32 -g 9,16 -b 256 -a 1152 -a 1024 -a 3"
expect 0 'predictor +shape: ' $gemm --flops 2e9 --bytes 1e7
expect 0 '"predictor": "shape"' $gemm --flops 2e9 --bytes 1e7 --json
# its model says what FLOPs and bytes take, another's what elements do
expect 0 'predictor +(cold|bound): ' $gemm
expect 0 'predictor +shape: ' "$weir" predict l.csv -k 'vectorized_elementwise_opa<32>' -g 900 -b 128 -a 460000
expect 0 'linear|bound|nearest|ratio' "$weir" predict l.csv
expect 0 '"mean_log2_error": ' "$weir" predict l.csv --json
expect 1 'the device refuses the launch' "$weir" predict -d H200 -k x -g 1 -b 1025
expect 1 '"t50_ns": null' "$weir" predict -d H200 -k x -g 1 -b 1025 --json
expect 2 'several kernels of the files' "$weir" predict l.csv -k sgemm -g 1 -b 32
# A kernel that the files do not have is a slip, unless they have siblings of it.
expect 2 'no kernel of the files has that in its name' "$weir" predict l.csv -k no_such_kernel -g 1 -b 32
expect 2 'Without --kernel they are listed' "$weir" predict l.csv -k no_such_kernel -g 1 -b 32 --json
new='vectorized_elementwise_opa<33>'
expect 0 'kernel +not in the files; siblings of it are' "$weir" predict l.csv -k "$new" -g 900 -b 128
expect 0 '"kernel_known": false' "$weir" predict l.csv -k "$new" -g 900 -b 128 --json
# Devices are found as people write them; who names another is told which there are, and each of those
# is one.
expect 0 'predictor' "$weir" predict -d h200 -k my_gemm -g 128 -b 256
expect 2 "of a device 'Voodoo'.* known devices are: .*, T4, .*, H200, " "$weir" predict -d Voodoo -k x -g 1 -b 32
expect 2 'one of: .*, T4, ' "$weir" predict -k x -g 1 -b 32
"$weir" predict -d Voodoo -k x -g 1 -b 32 2>&1 | sed 's/.*known devices are: //; s/, /\n/g' >devices
while read -r device; do
	expect 0 'predictor' "$weir" predict -d "$device" -k x -g 1 -b 32
done <devices
same=$(wc -l <devices)
[ "$same" -ge 10 ] || { echo "FAILED: $same devices are known"; failures=1; }
expect 2 '--grid is missing' "$weir" predict -d H200 -k x -b 32
expect 2 '--grid=0: ' "$weir" predict -d H200 -k x -g 0 -b 32
expect 2 '--grid=1,2,3,4: ' "$weir" predict -d H200 -k x -g 1,2,3,4 -b 32
expect 2 '--block=-3: ' "$weir" predict -d H200 -k x -g 1 -b -3
expect 2 '--flops=nan: not a number above 0' $one --flops nan
expect 2 '--bytes=-1: not a number above 0' $one --bytes -1
expect 2 '--unit=int4: there are' $one --unit int4
expect 2 '--arg=x: ' $one -a x
expect 2 'name traces or tables' "$weir" predict
expect 2 "don't name the device" "$weir" predict -k x -g 1 -b 32
finish
