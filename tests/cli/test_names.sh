# Names of strangers: what a terminal would obey reaches none, and what is very long is cut.
weir=$1
. "$(dirname "$0")/expect.sh"
cd "$scratch" || exit 1

# ESC, a bell, DEL, the CSI of C1, a carriage return, and a mark that turns the line around.
bad='\u001b[31mred\u001b]0;title\u0007\u007f\u009b2J\r\u202eend'
long=$(printf '%03000d' 0 | tr 0 k)

# event PHASE CATEGORY NAME TRACK TS DUR ARGUMENTS
event() {
	printf '{"ph":"%s","cat":"%s","name":"%s","pid":%s,"tid":%s,"ts":%s,"dur":%s,"args":{%s}}' "$@"
}

# kernels CORRELATION NAME: an operator, a call and a kernel of that name.
kernels() {
	event X cpu_op "$2" 100 100 "${1}000" 90 "\"External id\":$1,\"Input Dims\":[[1,2]],\"x\":\"$2\""
	printf ,
	event X cuda_runtime cudaLaunchKernel 100 100 "${1}010" 5 "\"correlation\":$1,\"External id\":$1"
	printf ,
	event X kernel "$2" 0 7 "${1}020" "$3" "\"correlation\":$1,\"device\":0,\"stream\":7,\"External id\":$1,
		\"grid\":[$1,1,1],\"block\":[32,1,1]"
	printf ,
}

{
	printf '{"deviceProperties":[{"id":0,"name":"%s","computeMajor":9,"computeMinor":0,"numSms":132}],' "$bad"
	printf '"traceEvents":['
	for i in 1 2 3 4 5 6 7 8; do
		kernels $i "$bad" 20
		kernels 1$i "$bad$bad" 500
		kernels 2$i "$long" 30
	done
	printf '{"ph":"M","name":"thread_name","pid":100,"tid":100,"args":{"name":"%s"}},' "$bad"
	printf '{"ph":"M","name":"process_name","pid":100,"tid":0,"args":{"name":"%s"}}]}' "$bad"
} >names.json
expect 0 '^$' "$weir" import -q -o names.weir names.json

escape=$(printf '\033')
# tame COMMAND...: neither of its streams has a byte that a terminal obeys, nor a line without end.
tame() {
	"$@" >out 2>&1 </dev/null
	if LC_ALL=C tr -d '\n\t' <out | LC_ALL=C grep -aq "[[:cntrl:]]"; then
		echo "FAILED: $* prints control characters: $(LC_ALL=C grep -am 1 '[[:cntrl:]]' out | cut -c 1-300 | cat -v)"
		failures=$((failures + 1))
	fi
	if LC_ALL=C grep -aq "$(printf '\302\233')\\|$(printf '\342\200\256')" out; then
		echo "FAILED: $* prints characters that a terminal obeys"
		failures=$((failures + 1))
	fi
	if awk 'length > 1000 { exit 1 }' out; then :; else
		echo "FAILED: $* prints lines of more than 1000 bytes"
		failures=$((failures + 1))
	fi
}

esc=$(printf "$escape[31mred")
expect 0 'red' "$weir" report names.weir
tame "$weir" report -n 0 names.weir
tame "$weir" hints names.weir
tame "$weir" memory names.weir
tame "$weir" diff names.weir names.weir
tame "$weir" diff -n 0 names.weir names.weir
tame "$weir" predict -d H200 names.weir
tame "$weir" predict -d H200 names.weir -k red -g 1 -b 32
tame "$weir" predict -d H200 names.weir -k "$esc" -g 1 -b 32
tame "$weir" predict -d H200 names.weir -k "$long$long" -g 1 -b 32
tame "$weir" predict -d "$esc" -k x -g 1 -b 32
tame "$weir" report "$esc"
tame "$weir" "$esc"
expect 0 'kkk…' "$weir" predict -d H200 names.weir
expect 0 '"kernel": "k{3000}"' "$weir" predict -d H200 --json names.weir
expect 2 'several kernels of the files .*\?\[31mred' "$weir" predict -d H200 names.weir -k red -g 1 -b 32
finish
