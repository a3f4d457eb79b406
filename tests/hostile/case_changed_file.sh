# Nothing in shared memory is trusted: another process changes random words of the trace while it is
# being recorded.  The program ends as without Weir; whatever is in the file then, the reader ends in
# order.  case_changed_file.sh BUILD [SEEDS [CHANGES]]
. "$(dirname "$0")/paths.sh"
need_hook
make_work changed_file
cd "$work" || exit 1
bad=0
seeds=${2:-1}
changes=${3:-40000}

said() { # WHAT COMMAND...: status and output
	timeout 120 "$@" 2>err </dev/null
	echo "status $?"
}

# Whatever it finds: no signal, and no end that it does not find.
reads() {
	timeout 120 "$weir" report "$1" >report 2>&1
	status=$?
	[ $status -lt 124 ] && return
	echo "weir report $1: status $status"
	tail -n 3 report
	bad=1
}

export LD_LIBRARY_PATH="$libs/mock"
said "$programs/changed_file" 1 1 >plain
seed=0
while [ $((seed += 1)) -le "$seeds" ]; do
	for mode in file flight record record-flight gpu; do
		trace=$mode.$seed.weir
		case $mode in
		file) said env LD_PRELOAD="$hook" NVTX_INJECTION64_PATH="$hook" WEIR="args,record:$work/$trace" \
			"$programs/changed_file" $seed "$changes" >with ;;
		flight) said env LD_PRELOAD="$hook" NVTX_INJECTION64_PATH="$hook" \
			WEIR="args,flight=2M,record:$work/$trace" "$programs/changed_file" $seed "$changes" >with ;;
		record) said "$weir" record -q --args -o "$trace" -- "$programs/changed_file" $seed "$changes" >with ;;
		gpu) # CUPTI's thread writes as well, and a learner reads what it is told
			said "$weir" record -q --gpu --predict --sim -o "$trace" -- \
				"$programs/changed_file" $seed "$changes" >with ;;
		record-flight) said "$weir" record -q --flight=16M -o "$trace" -- \
			"$programs/changed_file" $seed "$changes" >with ;;
		esac
		cmp -s plain with || {
			echo "$mode, seed $seed: $(cat with) in place of $(cat plain); $(tail -n 2 err)"
			bad=1
		}
		[ ! -e "$trace" ] || reads "$trace"
	done
	[ $bad = 0 ] || break
	rm -f ./*.weir
done
[ $bad = 0 ] && rm -rf "$work"
exit $bad
