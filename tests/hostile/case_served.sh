# Programs' uses of their memory (programs/served.c), alone and under weir run --pool: the same
# output and exit status.
set -u
. "$(dirname "$0")/paths.sh"
need_hook
make_work served
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$sim

failed() {
	echo "$*"
	bad=1
}

# run MODE SIM CASE [VARIABLE=VALUE...]
run() {
	mode=$1 script=$2 name=$3
	shift 3
	rm -f device calls
	env WEIR_SIM="$script" "$@" timeout 100 "$programs/served" "$name" >"$mode.out" 2>&1 </dev/null
	echo $? >"$mode.status"
}

for name in handlers jump many_streams context_ends default_streams resets peers waits host_first captures captures_free captures_allow own_stream \
	questions nvshmem steady threads; do
	[ -z "${CASE-}" ] || [ "$CASE" = "$name" ] || continue
	memory= library=
	case $name in
	peers) script=time=virtual,devices=2 ;;
	default_streams | host_first | own_stream) script=gpu=$work/device,time=real ;;
	waits) script=gpu=$work/device,time=real,context=0 memory=,memory=536870912 ;;
	nvshmem) script=time=virtual library=$libs/libnvshmem_host.so.3 ;;
	steady) script=time=virtual,log=$work/calls ;;
	threads) script=time=virtual,context=0 memory=,memory=33554432 ;;
	*) script=time=virtual ;;
	esac
	rm -rf share
	"$weir" run --quiet --isolated --share share -- true || failed "the shared file can't be made"
	run plain "$script" "$name" ${library:+"LD_PRELOAD=$library"}
	[ "$(cat plain.status)" = 0 ] || failed "$name: alone it leaves with $(cat plain.status): $(cat plain.out)"
	run pool "$script" "$name" LD_PRELOAD="$library $hook" WEIR="sched,class=best-effort,share=$work/share$memory,pool"
	for what in status out; do
		cmp -s plain.$what pool.$what && continue
		failed "$name: $what differs from that without the pool"
		diff plain.$what pool.$what | head -n 8
	done
done

cd / && [ $bad = 0 ] && rm -rf "$work"
exit $bad
