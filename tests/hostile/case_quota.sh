# Every way to have device memory (programs/quota.c), alone and under a quota that is not reached: the same output, exit
# status, and calls that reach the driver, but for what the library asks; then beyond the quota, where the driver's own
# answer is that its memory is out, and beside others of the group.
set -u
. "$(dirname "$0")/paths.sh"
need_hook
make_work quota
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$sim

own='cuCtxGet(Current|Device)|cuMemGetInfo_v2|cuDeviceGet.*|cuMemPoolGetAttribute|cuThreadExchange.*|cuStreamIsCapturing.*'
own="$own|cuDevicePrimaryCtx(Retain|Release.*|GetState)|cuGetProcAddress.*|cuDriverGetVersion|cuEvent.*|cuStreamGetFlags"

failed() {
	echo "$*"
	bad=1
}

# run MODE SIM CASE [VARIABLE=VALUE...]
run() {
	mode=$1 script=$2 name=$3
	shift 3
	rm -f device "$mode.log"
	env WEIR_SIM="$script,log=$work/$mode.log" "$@" \
		timeout 100 "$programs/quota" "$name" >"$mode.out" 2>&1 </dev/null
	echo $? >"$mode.status"
	awk '$2 > 0' "$mode.log" | grep -Ev "^($own) " >"$mode.calls"
}

# under BYTES: what WEIR says.
under() {
	rm -rf share
	"$weir" run --quiet --isolated --share share -- true || failed "the shared file can't be made"
	echo "sched,class=best-effort,share=$work/share,memory=$1,memory_group=77"
}

for name in blocks arrays external pools physical graphs contexts elsewhere crowd ipc; do
	[ -z "${CASE-}" ] || [ "$CASE" = "$name" ] || continue
	run plain time=virtual,context=2M "$name"
	[ "$(cat plain.status)" = 0 ] || failed "$name: alone it leaves with $(cat plain.status): $(cat plain.out)"
	run quota time=virtual,context=2M "$name" LD_PRELOAD="$hook" WEIR="$(under 1073741824)"
	for what in status out calls; do
		cmp -s plain.$what quota.$what && continue
		failed "$name: $what differs from that without a quota"
		diff plain.$what quota.$what | head -n 8
	done
done

# Refused are those that are written with a 2.
for name in beyond nodes descriptors given_away limits family together; do
	[ -z "${CASE-}" ] || [ "$CASE" = "$name" ] || continue
	script=gpu=$work/device,time=real,context=0 quota=268435456
	case $name in
	together) script=$script,delay=cuDeviceGetUuid_v2:300ms ;; # for so long one thread joins
	given_away) script=gpu=$work/device,time=real,context=2M quota=271581184 ;; # a context is measured before
	esac
	run quota "$script" "$name" LD_PRELOAD="$hook" WEIR="$(under $quota)"
	case $name in
	beyond) cat >expected <<-END ;;
		half: 0
		cuMemAlloc_v2: 2
		all of it: 2
		cuMemAlloc: 2
		cuMemAllocPitch_v2: 2
		beyond everything: 2
		cuMemAllocManaged: 2
		cuMemAllocAsync: 2
		cuMemAllocAsync_ptsz: 2
		cuMemAllocFromPoolAsync: 2
		cuArrayCreate_v2: 2
		cuArray3DCreate_v2: 2
		cuMipmappedArrayCreate: 2
		cuImportExternalMemory: 2
		cuMemCreate: 2
		cuGraphAddMemAllocNode: 2
		cuGraphAddNode: 2
		captured: 2
		a launch goes on: 0
		and the capture ends: 0
		the other half: 0
		one byte: 2
		freed: 0
		cuDeviceTotalMem_v2: 0
		256 MiB in all
	END
	descriptors) cat >expected <<-END ;;
		4 exported
		one more: 2, 256 MiB used
		mapped again: 2, 256 MiB used
	END
	given_away) cat >expected <<-END ;;
		half of it: 0, 128 MiB used
		mapped: 0, 192 MiB used
		mapped: 0, 256 MiB used
		mapped: 2, 256 MiB used
		a handle is left: 0, 256 MiB used
		none is left: 0, 192 MiB used
		mapped then: 0, 256 MiB used
	END
	limits) cat >expected <<-END ;;
		a heap of 8 GiB: 2, 0 MiB used
		of 136 MiB: 0, 128 MiB used
		another half: 0, 256 MiB used
		more to print: 2, 256 MiB used
		larger stacks: 2, 256 MiB used
		a smaller heap: 0, 192 MiB used
		more to print: 0, 218 MiB used
		the first heap: 0, 154 MiB used
		without the context: 0, 0 MiB used
	END
	together) printf '4 granted, 12 refused\n' >expected ;;
	nodes) printf 'one: 0\nanother: 2\n' >expected ;;
	family) cat >expected <<-END ;;
		a child takes all: 0
		and after it another: 0
		and it again: 0
		one takes and becomes another: 0
		beside one that has half: 200
		what is left: 0
		it was killed: 0
		and here: 0
	END
	esac
	cmp -s expected quota.out && [ "$(cat quota.status)" = 0 ] && continue
	failed "$name leaves with $(cat quota.status)"
	diff expected quota.out
done
# The runtime, shared and static, says the same.
cat >expected <<END
cudaMalloc: 0
too much: 2
which is the last error: 2
once: 0
cudaMemGetInfo: 0
128 of 256 MiB left
cudaFree: 0
and now: 0
cudaGetDeviceProperties: 0
256 MiB in all
END
for name in quota_runtime quota_runtime_static; do
	[ -z "${CASE-}" ] || [ "$CASE" = "$name" ] || continue
	rm -f device
	WEIR_SIM=gpu=$work/device,time=real,context=0 LD_PRELOAD="$hook" WEIR="$(under 268435456)" \
		timeout 100 "$programs/$name" >quota.out 2>&1 || failed "$name leaves with $?"
	cmp -s expected quota.out && continue
	failed "$name says something else"
	diff expected quota.out
done

# The program may come back at any moment here, or never.
for name in handler left cancelled cloned forked; do
	[ -z "${CASE-}" ] || [ "$CASE" = "$name" ] || continue
	LD_LIBRARY_PATH=$libs/mock timeout 100 "$programs/quota_hard" "$name" >plain.out 2>&1 ||
		failed "$name: alone: $(cat plain.out)"
	LD_LIBRARY_PATH=$libs/mock LD_PRELOAD="$hook" WEIR="$(under 1073741824)" \
		timeout 100 "$programs/quota_hard" "$name" >quota.out 2>&1 ||
		failed "$name: leaves with $?: $(cat quota.out)"
	cmp -s plain.out quota.out || failed "$name: differs: $(cat quota.out)"
done
[ $bad = 1 ] || rm -rf "$work"
exit $bad
