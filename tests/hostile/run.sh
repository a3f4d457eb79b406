# Runs one case: run.sh BUILD NAME COMMAND [OPTION=VALUE...].  See cases.tbl.
#
# With WEIR_TEST_DRIVER=real in the environment it is the driver of this machine instead of the
# simulated one.  Exit status: 0 as expected, 1 not, 77 skipped.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"
name=$2 command=$3
shift 3

driver=sim preload= trace=yes log=yes output=yes counts=yes modes=preload,last,record gpu=yes args=no times=no
build_with= env= part= stacks=
for option in "$@"; do
	case $option in
	driver=* | preload=* | trace=* | log=* | output=* | counts=* | modes=* | gpu=* | args=* | times=* | build_with=* | env=* | part=* | stacks=*)
		eval "${option%%=*}=\${option#*=}" ;;
	*) echo "unknown option $option"; exit 1 ;;
	esac
done

case $driver${WEIR_TEST_DRIVER-} in
mock*) driver_path=$libs/mock ;;
params*) driver_path=$libs/params ;;
sim) driver_path=$sim ;;
simreal)
	driver=real driver_path=${LD_LIBRARY_PATH-}
	ls /dev/nvidia[0-9]* >/dev/null 2>&1 || {
		echo "there is no GPU"
		exit 77
	}
	;;
esac
command=$programs/$(printf '%s' "$command" | sed "s|@LIBS@|$libs|; s|@PROGRAMS@|$programs|")
make_work "$name"
failures=0

# The case's program, by a compiler of its own and with a sanitizer: COMPILER:SANITIZER.
build_program() {
	set -- "${command%% *}" "${build_with%:*}" "-fsanitize=${build_with#*:}"
	"$2" "$3" -fno-sanitize-recover=all -g -O1 -w -D_GNU_SOURCE -o "$work/program" \
		"$here/programs/${1##*/}.c" -lpthread -ldl >"$work/build" 2>&1 && {
		command=$work/program${command#"$1"}
		return
	}
	echo "$2 $3 does not work here: $(head -n 1 "$work/build")"
	rm -rf "$work"
	exit 77
}
[ -z "$build_with" ] || build_program
users=$(printf '%s' "$preload" | sed "s|[^:][^:]*|$libs/&|g")
[ "$preload" != @RUNTIME@ ] || users=$(ldd "$work/program" | awk '/lib[a-z]*san\.so/ { print $3; exit }')

# Calls that Weir makes itself, to learn names: they reach the driver once more than the program
# asked for.
own='cuFuncGetName|cuKernelGetName|cuKernelGetFunction|cuFuncGetModule|cuKernelGetLibrary'
own="$own|cuGraph.*Get.*|cuFuncGetAttribute|cuGetProcAddress.*|cuStreamIsCapturing.*"
own="$own|cuStreamGetCaptureInfo.*|cuDriverGetVersion|cuFuncGetParamInfo|cuKernelGetParamInfo"

[ "$args$times" = nono ] || own="$own|cuDeviceGet(Count|Name|Attribute|Uuid.*)|cuDeviceTotalMem.*"
[ "$times" != predict ] || own="$own|cuStreamQuery(_ptsz)?" # before CUPTI is ended

failed() {
	failures=$((failures + 1))
	printf '%s: %s: %s\n' "$name" "$mode" "$*"
}

# run VARIABLE=VALUE... -- PREFIX...: the program in a directory of its own, as `mode`.
run() {
	mkdir "$work/$mode"
	(
		cd "$work/$mode" || exit 1
		set -- "$@" $command
		env LD_LIBRARY_PATH="$driver_path:$libs" WEIR_SIM="log=$work/$mode.log.%p" \
			timeout 60 env "$@" >"$work/$mode.out" 2>"$work/$mode.err" </dev/null
		echo $? >"$work/$mode.status"
	) 2>/dev/null
	grandchildren
}

grandchildren() {
	[ "${command##*/}" = daemon_grandchild ] || return
	for i in $(seq 300); do # a minute, if it hangs
		[ -e "$work/$mode/finished" ] && return
		sleep 0.2
	done
	failed "the grandchild did not finish"
}

# The calls that reached the simulated driver, as `function count`.
reached() {
	cat "$work/$1".log.* 2>/dev/null |
		awk '$2 > 0 { n[$1] += $2 } END { for (f in n) print f, n[f] }' | sort
}

# Removes weir record's warning, which it gives even when it is quiet, of a recording without calls:
# where the program makes none, where chance decides whether a call comes before weir record ends
# (trace=maybe), or where only a part is recorded.  For any other program it would be wrong, and
# show.
forget_warning() {
	[ "$trace" != maybe ] && [ -n "$(reached plain)" ] ||
		LC_ALL=C sed -i '/^weir: no CUDA call was seen. /d' "$work/$mode.err"
	case $option in *--capture*)
		LC_ALL=C sed -i -E '/^weir: (no CUDA call was made in the part|the part that was asked for never began) /d' "$work/$mode.err" ;;
	esac
}

same_behaviour() {
	for what in status out err; do
		[ "$output" = no ] && [ $what != status ] && continue
		cmp -s "$work/plain.$what" "$work/$mode.$what" && continue
		failed "$what differs from that without Weir"
		diff "$work/plain.$what" "$work/$mode.$what" | head -n 6
	done
	[ "$log$driver" = yessim ] || return
	reached plain | grep -Ev "^($own) " >"$work/a"
	reached "$mode" | grep -Ev "^($own) " >"$work/b"
	cmp -s "$work/a" "$work/b" || {
		failed "what reaches the driver differs"
		diff "$work/a" "$work/b" | head -n 6
	}
}

good_trace() {
	file=$work/$mode.weir
	if [ ! -e "$file" ]; then
		[ "$trace" != yes ] || failed "there is no trace"
		return
	fi
	[ "$trace" != no ] || [ "$mode" = record ] || failed "a trace of a program without CUDA"
	check_readable "$file" || failed "weir report does not read the trace"
	recorded "$file" >"$work/recorded"
	[ "$counts" = yes ] || return
	[ -z "$stacks" ] || stacked
	[ -e "$work/$mode/samples" ] && [ "$times" = sample ] && sampled
	[ -e "$work/$mode/counts" ] && expected
	[ "$log$driver" = yessim ] && complete
}

# The program's own account.
expected() {
	awk 'FILENAME ~ /recorded$/ { n[$1] = $2; next }
	n[$1] + 0 < $2 || n[$1] + 0 > $3 {
		print "  " $1 ": " n[$1] + 0 " recorded, " $2 " to " $3 " expected"
	}' "$work/recorded" "$work/$mode/counts" >"$work/complaint"
	[ ! -s "$work/complaint" ] || failed "counts:
$(cat "$work/complaint")"
}

# As many launches were timed as can be, and nothing was lost.
sampled() {
	"$weir" report --json --top=0 "$file" >"$work/report"
	timed=$(LC_ALL=C sed -n -e '/"device_activities"/,/^ *\]/s/.*"device_timed": *\([0-9]*\).*/\1/p' \
		-e 's/.*"device_left_out": *\([0-9]*\).*/\1/p' "$work/report" | awk '{ n += $1 } END { print n + 0 }')
	[ "$timed" = "$(cat "$work/$mode/samples")" ] ||
		failed "$timed launches were timed, not $(cat "$work/$mode/samples")"
	! grep -q 'samples were lost' "$work/report" || failed "samples were lost"
}

# Each synchronisation and allocation has its stack, or it was declared lost.
stacked() {
	"$weir" report --json --top=0 "$file" >"$work/report"
	kept=$(LC_ALL=C sed -n 's/^[^{]*"call_stacks": {"count": \([0-9]*\), "lost": \([0-9]*\).*/\1 \2/p; /"call_stacks": {/,/}/{
		s/^[ \t]*"count": \([0-9]*\),.*/\1/p
		s/^[ \t]*"lost": \([0-9]*\),.*/\1/p
	}' "$work/report" | head -n 2 | awk '{ for (i = 1; i <= NF; i++) n += $i } END { print n + 0 }')
	wanted=$(awk '/^(cuMemAlloc_v2|cuCtxSynchronize) / { n += $2 } END { print n + 0 }' "$work/recorded")
	case $stacks in *launch*) wanted=$((wanted + $(awk '/^cuLaunchKernel / { n += $2 } END { print n + 0 }' "$work/recorded"))) ;; esac
	case $stacks in *sample*) wanted=0 ;; esac
	[ "$kept" -ge "$wanted" ] || failed "$kept call stacks are there or lost, of $wanted"
}

# The simulated driver's account: every call that came through the program is in the trace.
complete() {
	case $name in limits_* | elsewhere | other_user | leave_busy) return ;; esac
	reached "$mode" | grep -Ev "^($own) " >"$work/a"
	grep -E "^cu[A-Z]" "$work/recorded" | grep -Ev "^($own) " | sort >"$work/b"
	cmp -s "$work/a" "$work/b" || {
		failed "the trace is not what reached the driver (<)"
		diff "$work/a" "$work/b" | head -n 6
	}
}

wants() {
	case ,$modes, in *,$1,*) true ;; *) false ;; esac
}

config=${part:+capture=$part,}
[ "$args" = no ] || config=args,
config=$config${stacks:+stacks=$stacks,}
[ "$args" != predict ] || config=args,predict,
case $times in
no) ;;
yes) config=${config}gpu, ;;
sample) # every launch between two events
	config=${config}gpu=sample:1,
	own="$own|cuEvent(Create|Record|Record_ptsz|Query|ElapsedTime)|cuCtxGet(Current|Device|Id)"
	own="$own|cuCtx(Push|Pop)Current_v2|cuStreamGet(Id|Ctx).*|cuThreadExchangeStreamCaptureMode"
	own="$own|cuDevicePrimaryCtxGetState" ;;
predict) # the same, and CUPTI in windows
	config=${config}gpu=predict:2,
	own="$own|cuEvent(Create|Record|Record_ptsz|Query|ElapsedTime)|cuCtxGet(Current|Device|Id)"
	own="$own|cuCtx(Push|Pop)Current_v2|cuStreamGet(Id|Ctx).*|cuThreadExchangeStreamCaptureMode"
	own="$own|cuDevicePrimaryCtxGetState" ;;
esac
[ "$times" = no ] || own="$own|cuDeviceGetCount|cuDeviceGetName|cuDeviceTotalMem.*|cuDeviceGetAttribute"
mode=plain
run ${users:+LD_PRELOAD="$users"}
status=$(cat "$work/plain.status")
case $status in
77) cat "$work/plain.err" "$work/plain.out"; rm -rf "$work"; exit 77 ;;
98 | 99 | 124 | 126 | 127 | 13[1269])
	case $name in leave_*) ;; *) failed "alone, it leaves with status $status" ;; esac ;;
esac
if [ ! -e "$hook" ] || [ ! -x "$weir" ]; then
	echo "libweir.so is not built: ran the program alone"
	rm -rf "$work"
	exit 77
fi

if wants preload; then
	mode=preload
	run LD_PRELOAD="$hook${users:+:$users}" ${env:+"$env"} NVTX_INJECTION64_PATH="$hook" \
		WEIR="${config}record:$work/preload.weir"
	same_behaviour
	good_trace
fi
if wants last && [ -n "$users" ]; then
	mode=last
	run LD_PRELOAD="$users:$hook" WEIR="${config}record:$work/last.weir"
	same_behaviour
	good_trace
fi
option=${part:+--capture=$part}
[ -z "$stacks" ] || option="$option --stacks=$stacks"
[ "$args" = no ] || option="$option --args"
[ "$args" != predict ] || option="$option --predict"
[ "$times" != sample ] || option="$option --gpu=sample:1"
[ "$times" != predict ] || option="$option --gpu=predict:2"
[ "$driver" = sim ] && option="$option --sim"
if wants record; then
	mode=record
	run ${users:+LD_PRELOAD="$users"} "$weir" record --quiet $option -o "$work/record.weir" --
	forget_warning
	same_behaviour
	good_trace
fi
if wants flight; then
	mode=flight
	run "$weir" record --quiet --flight=16M $option -o "$work/flight.weir" --
	sed -i '/^weir: a call failed: saved /d' "$work/flight.err"
	forget_warning
	same_behaviour
	good_trace
fi
if wants stat; then
	mode=stat
	run "$weir" stat $option -o "$work/counted" --
	same_behaviour
	[ -s "$work/counted" ] || failed "weir stat counted nothing"
fi

if [ $failures = 0 ]; then
	rm -rf "$work"
else
	echo "kept: $work"
	exit 1
fi
