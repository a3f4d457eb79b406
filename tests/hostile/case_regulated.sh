# Programs that are hard on the scheduler (programs/regulated.c, gated.c): each alone, then as one that shares a GPU, without an
# arbiter: what an arbiter would write, the program writes itself.  The same output, exit status and calls that
# reach the driver, but for those that the scheduler makes; and what the slot says holds.  No case may last longer than a
# program does whose every launch has waited in vain (--max-wait is 100 ms); a minute is far more.
set -u
. "$(dirname "$0")/paths.sh"
need_hook
here=$(cd "$(dirname "$0")" && pwd)
make_work regulated
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$sim

own='cuEvent(Create|Destroy_v2|Record|Record_ptsz|Query)|cuStreamWaitEvent(_ptsz)?|cuCtxGet(Current|Device)|cuOccupancyMax.*'
own="$own|cuDeviceGet.*|cuDevSm.*|cuDevResource.*|cuGreenCtx.*|cuThreadExchange.*|cuKernelGetFunction|cuFuncGet.*"
own="$own|cuDevicePrimaryCtx(Retain|Release.*|GetState)|cuStreamIsCapturing.*|cuGetProcAddress.*|cuDriverGetVersion|cuStreamGetFlags|cuMemGetInfo_v2"

always_own=$own

# run MODE CASE [VARIABLE=VALUE...]
run() {
	mode=$1 name=$2
	shift 2
	rm -f device "$mode.log"
	env WEIR_SIM="$device,log=$work/$mode.log" "$@" \
		timeout 100 "$programs/$program" "$name" >"$mode.out" 2>"$mode.err" </dev/null
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
		keep_share
		run shared "$name" LD_PRELOAD="$hook" WEIR="sched,class=$class,share=$work/share,wait=$patience,mps"
		for what in status out calls; do
			cmp -s plain.$what shared.$what && continue
			failed "$name, $class: $what differs from that without Weir"
			diff plain.$what shared.$what | head -n 8
		done
		# A program that ends in order leaves nothing, also if nobody looks for the dead.
		case $name in child | exits)
			WEIR=share=$work/share "$programs/regulated" clean >out || failed "$name: left: $(cat out)" ;;
		esac
		let_go
	done
}

failed() {
	echo "$*"
	bad=1
}

# The one kernel of the library's own, where there is an assembler for it.
PATH=$PATH:/usr/local/cuda/bin
for sm in 75 90; do
	! command -v ptxas >/dev/null || ptxas -arch=sm_$sm -o hold.cubin "$here/../../src/hook/sched/hold.ptx" ||
		failed "hold.ptx is refused for sm_$sm"
done

# No launch of gated.c's and holds.c's is let go by the clock, unless that is the case's.
while read -r program name classes; do
	[ -z "${CASE-}" ] || [ "$CASE" = "$name" ] || continue
	patience=100000000
	[ "$program" = regulated ] || patience=30000000000
	device="gpu=$work/device,time=real,sharing=mps"
	LD_LIBRARY_PATH=$sim
	own=$always_own
	case $program.$name in
	holds.* | regulated.nonsense) own="$own|cuModule(LoadData|Unload|GetFunction)|cuMemHost.*|cuLaunchKernel|cuStreamQuery" ;;
	esac
	case $name in
	sizes) own="$own|cuStream(Query|Destroy_v2)" ;;
	devices | moves) device="$device,devices=3" ;;
	together) device="$device,delay=cuDeviceGetUuid_v2:300ms" ;; # for so long one thread joins
	expected | gives_up | stopped | leaves | ends) patience=100000000 ;;
	backlog) device="$device,wave=5ms,copy=5ms" patience=30000000000 ;;
	refused) device="$device,fault=cuMemHostRegister_v2:*:801" patience=100000000 ;;
	clones | reloads) device=time=virtual ;;
	shut_in_*) device=time=virtual patience=100000000 ;;
	esac
	[ "$name" != reloads ] || LD_LIBRARY_PATH=$libs/unloads
	try "$name" $classes
done <<END
regulated depends          best-effort
regulated backlog          best-effort
regulated marks            best-effort
regulated orphan           best-effort
regulated patience         best-effort
regulated cooperative      best-effort
regulated barrier          best-effort
regulated contexts_capped  best-effort
regulated contexts         best-effort latency
regulated reset            best-effort latency
regulated modules          best-effort
regulated streams_end      best-effort latency
regulated many_streams     best-effort latency
regulated many_threads     best-effort latency
regulated failures         best-effort latency
regulated events           best-effort latency
regulated joins            best-effort latency
regulated left             best-effort latency
regulated capture          best-effort latency
regulated errno            best-effort latency
regulated child            best-effort latency
regulated nonsense         best-effort latency
gated     handler          best-effort
gated     jump             best-effort
gated     cancel           best-effort
gated     exits            best-effort
gated     execs            best-effort
gated     moves            best-effort latency
gated     clones           best-effort
gated     clones_first     best-effort latency
gated     reloads          best-effort
gated     graphs           best-effort
gated     devices          best-effort
gated     sizes            best-effort
gated     rests            best-effort
gated     opened           best-effort
gated     reclassed        latency
gated     expected         best-effort
gated     shut_in_early    best-effort latency
gated     shut_in_late     best-effort
gated     together         best-effort
holds     returns          best-effort
holds     gives_up         best-effort
holds     stopped          best-effort
holds     let_go           best-effort
holds     joins            best-effort
holds     captures         best-effort
holds     ends             best-effort
holds     threads          best-effort
holds     leaves           best-effort
holds     refused          best-effort
END
# A thread that joins for longer than anybody waits: what passed meanwhile is said.
if [ -z "${CASE-}" ] || [ "$CASE" = unjoined ]; then
	rm -rf share device
	WEIR_SIM=gpu=$work/device,time=real,delay=cuDeviceGetUuid_v2:100s timeout 100 "$weir" run --sim --isolated \
		--share share -- "$programs/gated" unjoined >out 2>err || failed "unjoined: leaves with $?: $(cat out err)"
	grep -q '^weir: 1 program took more than 2 s to join' err || failed "unjoined: it is not said: $(cat err)"
fi
[ $bad = 1 ] || rm -rf "$work"
exit $bad
