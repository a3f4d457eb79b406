# A latency program and one of best effort, run together and recorded: no launch of best effort enters the driver between a
# request's begin and its end unless the recording says how it may (gate.py), by a policy without caps and by one with.
# Under a policy that lets all go, the same check has to fail.
set -u
. "$(dirname "$0")/paths.sh"
need_hook
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
make_work gate
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$sim

# try POLICY...: the verdict's status.
try() {
	rm -rf share device ./*.weir ./*.ndjson
	mkdir -m 700 share
	"$weir" sched --share "$work/share" policy "$@" || return 2
	# Slow, so that a request lasts longer than what goes on around it.
	export WEIR_SIM="gpu=$work/device,time=real,sharing=mps,speed=.02"
	set -- "$weir" run --quiet --sim --max-wait 20s --share "$work/share"
	"$@" --class latency -o latency.weir -- "$programs/regulated" work &
	other=$!
	"$@" --class best-effort -o best-effort.weir -- "$programs/regulated" work || return 2
	wait $other || return 2
	for name in latency best-effort; do
		check_readable $name.weir || return 2
		"$weir" export -f ndjson -o $name.ndjson $name.weir || return 2
	done
	python3 "$here/gate.py" requests latency.weir best-effort.weir latency.ndjson best-effort.ndjson
}

# expect STATUS POLICY...
expect() {
	want=$1
	shift
	try "$@" >said 2>&1
	status=$?
	echo "$*: $(cat said)"
	[ $status = "$want" ] || { echo "$*: status $status, not $want"; bad=1; }
}

# Waits that were left by longjmp, 300 of them, have ended when they were left.
"$weir" run --quiet --isolated --share left -- true
env WEIR_SIM="gpu=$work/device,time=real,sharing=mps" LD_PRELOAD="$hook" \
	WEIR="sched,class=best-effort,share=$work/left,wait=30000000000,record:$work/left.weir" \
	timeout 60 "$programs/gated" jump >left.out || { echo "jump: $(cat left.out)"; bad=1; }
"$weir" export -f ndjson -o left.ndjson left.weir
python3 "$here/gate.py" waits left.weir left.ndjson || { echo "waits last longer than the thread"; bad=1; }

expect 0 strict
expect 0 fit
expect 0 strict hold=100us
expect 1 fifo
[ $bad = 1 ] || rm -rf "$work"
exit $bad
