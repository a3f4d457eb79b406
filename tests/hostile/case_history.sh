# The files of foretelling: what no earlier run has left is not replaced, what may not be written ends
# nobody, and what can't be read at once is not waited for.
. "$(dirname "$0")/paths.sh"
need_hook
make_work history
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$sim

complain() {
	echo "$*"
	bad=1
}

# silent WHAT CONFIG PREFIX...: the program with this configuration says and does what it does alone.
silent() {
	what=$1 config=$2
	shift 2
	rm -f t.weir
	timeout 60 "$@" env LD_PRELOAD="$hook" WEIR="predict,${config},record:$work/t.weir" \
		"$programs/many_launches" 200 >out 2>err
	code=$?
	[ $code = 0 ] && [ ! -s err ] && [ "$(cat out)" = "0 failed" ] ||
		complain "$what: status $code, $(cat out err | cut -c 1-200)"
	ls | grep -q '\.new$' && complain "$what: left $(ls | grep '\.new$')"
}

is_said() {
	"$weir" report t.weir | grep -q "$1"
}

says() {
	is_said "$1" || complain "$what: the trace does not say: $1"
}

silent "first run" "history=$work/h"
silent "second run" "history=$work/h"
"$weir" report t.weir | grep -q "nothing is taken" && complain "what the first run left is not taken"
[ -s h ] || complain "nothing was written"

# Threads that go on launching while what was learnt is written do not damage it.
for round in 1 2 3 4; do
	what="busy threads, run $round"
	rm -f t.weir
	WEIR_SIM_CUPTI=buffer=64 timeout 60 env LD_PRELOAD="$hook" \
		WEIR="gpu,predict,history=$work/busy,record:$work/t.weir" \
		"$programs/leave" anew >out 2>err
	[ $? = 6 ] || complain "$what: $(cat out err | cut -c 1-200)"
	[ -s busy ] || complain "$what: nothing was written"
	! is_said "nothing is taken" || complain "$what: what the run before has left is not taken"
done

# The activities that CUPTI still has when the program ends are flushed before CUPTI's own exit
# handler, and are learnt.
silent "with device times" "gpu,history=$work/timed"
"$weir" report --json t.weir | grep -q '"device_kernels": 200$' ||
	complain "with device times: what CUPTI had at the end is not in the trace"
for run in first second; do
	rm -f t.weir
	LD_PRELOAD=$hook WEIR="gpu,predict,history=$work/few.history,record:$work/t.weir" \
		"$programs/many_launches" 5 >out
done
says "^  5 launches were predicted;"
for refused in refuse refuse-kernels; do
	silent "CUPTI refuses" "gpu,history=$work/h" env WEIR_SIM_CUPTI=$refused
	silent "CUPTI refuses, and no history" gpu env WEIR_SIM_CUPTI=$refused
done

cp h before
silent "a limit of size" "history=$work/h" prlimit --fsize=3000000
says "may write no file of that size"
cmp -s h before || complain "a limit of size: the history is another"

echo "my notes, which I have nowhere else" >notes
cp notes before
silent "somebody's file" "history=$work/notes"
says "no file that an earlier run has left"
cmp -s notes before || complain "somebody's file was replaced"

mkfifo fifo
silent "a fifo" "history=$work/fifo,model=$work/fifo,warm=$work/fifo"
[ -p fifo ] || complain "the fifo was replaced"
mkdir folder
silent "a directory" "history=$work/folder,model=$work/folder,warm=$work/folder"
silent "no directory" "models=$work/fifo"
mkfifo a.weir-model
echo rubbish >b.weir-model
mkdir c.weir-model
silent "a directory of rubbish" "models=$work"
says "none is for this device in $work"
: >empty
silent "an empty file" "history=$work/empty"
[ -s empty ] || complain "an empty file is not filled"
[ $bad = 0 ] && rm -rf "$work"
exit $bad
