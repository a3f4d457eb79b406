# Programs that are hard on the scheduler (programs/regulated.c): each alone, then as one that shares a GPU, without an
# arbiter: what an arbiter would write, the program writes itself.  The same output, exit status and calls that
# reach the driver, but for those that the scheduler makes; and what the slot says holds.  No case may last longer than a
# program does whose every launch has waited in vain (--max-wait is 100 ms); a minute is far more.
set -u
. "$(dirname "$0")/paths.sh"
need_hook
make_work regulated
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$sim

own='cuEvent(Create|Destroy_v2|Record|Record_ptsz|Query)|cuStreamWaitEvent(_ptsz)?|cuCtxGet(Current|Device)|cuOccupancyMax.*'
own="$own|cuDeviceGet.*|cuDevSm.*|cuDevResource.*|cuGreenCtx.*|cuThreadExchange.*|cuKernelGetFunction|cuFuncGet.*"
own="$own|cuDevicePrimaryCtx(Retain|Release.*|GetState)|cuStreamIsCapturing.*|cuGetProcAddress.*|cuDriverGetVersion|cuStreamGetFlags"

# run MODE CASE [VARIABLE=VALUE...]
run() {
	mode=$1 name=$2
	shift 2
	rm -f device "$mode.log"
	env WEIR_SIM="gpu=$work/device,time=real,sharing=mps,log=$work/$mode.log" "$@" \
		timeout 60 "$programs/regulated" "$name" >"$mode.out" 2>"$mode.err" </dev/null
	echo $? >"$mode.status"
	awk '$2 > 0' "$mode.log" | grep -Ev "^($own) " >"$mode.calls"
}

# try CASE CLASS...: as one that shares.
try() {
	name=$1
	shift
	run plain "$name"
	[ "$(cat plain.status)" = 0 ] || failed "$name: alone it leaves with $(cat plain.status): $(cat plain.out)"
	for class; do
		rm -rf share
		"$weir" run --quiet --isolated --share share -- true || failed "the shared file can't be made"
		run shared "$name" LD_PRELOAD="$hook" WEIR="sched,class=$class,share=$work/share,wait=100000000,mps"
		for what in status out calls; do
			cmp -s plain.$what shared.$what && continue
			failed "$name, $class: $what differs from that without Weir"
			diff plain.$what shared.$what | head -n 8
		done
		# Who ends in order leaves nothing, also where nobody looks for the dead.
		[ "$name" != child ] || WEIR=share=$work/share "$programs/regulated" clean >out || failed "left: $(cat out)"
	done
}

failed() {
	echo "$*"
	bad=1
}

while read -r name classes; do
	[ -z "${CASE-}" ] || [ "$CASE" = "$name" ] || continue
	try "$name" $classes
done <<END
depends          best-effort
orphan           best-effort
patience         best-effort
cooperative      best-effort
barrier          best-effort
contexts_capped  best-effort
contexts         best-effort latency
reset            best-effort latency
modules          best-effort
streams_end      best-effort latency
many_streams     best-effort latency
many_threads     best-effort latency
failures         best-effort latency
events           best-effort latency
joins            best-effort latency
capture          best-effort latency
errno            best-effort latency
child            best-effort latency
nonsense         best-effort latency
END
[ $bad = 1 ] || rm -rf "$work"
exit $bad
