# The names of the memory that programs share (DIR/sched) are cut, replaced or written over while
# programs, weir run, weir top and weir monitor use it: none of them ends before its time, and
# whoever comes then gets in, or a sentence with a remedy.
set -u
. "$(dirname "$0")/paths.sh"
need_hook
make_work shared_file
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$sim
sched="$weir sched --share $work/share"

failed() {
	echo "$kind: $*"
	bad=1
}

change() {
	case $kind in
	empty) : >share/sched ;;
	cut) truncate -s 20 share/sched ;;
	removed) rm share/sched ;;
	directory) rm -r share ;;
	garbage) printf 'something else' >share/sched ;;
	fifo) rm share/sched && mkfifo share/sched ;;
	readable) chmod 0666 share/sched ;;
	esac
}

# The process that says so of itself ends only when it is told to.
is_alive() {
	kill -0 "$1" 2>/dev/null || failed "$2 has ended: $(cat "$2.out")"
}

# A program comes now: a program runs, or is refused with what to do.
comes_now() {
	timeout 60 "$weir" run --quiet --sim --share "$work/share" -- "$programs/many_launches" 10 >out 2>&1
	status=$?
	case $status in
	0) ;;
	3) grep -Eq 'Remove (it|that)' out || failed "no remedy: $(cat out)" ;;
	*) failed "weir run leaves with $status: $(cat out)" ;;
	esac
	timeout 60 $sched status >out 2>&1
	[ $? -lt 4 ] || failed "weir sched status: $(cat out)"
}

for kind in empty cut removed directory garbage fifo readable; do
	[ -z "${CASE-}" ] || [ "$CASE" = "$kind" ] || continue
	rm -rf share device go
	for out in latency best-effort top; do : >$out.out; done # what they wrote before is not waited for
	mkdir -m 700 share
	mkfifo go
	export WEIR_SIM="gpu=$work/device,time=real"
	for class in latency best-effort; do
		"$weir" run --quiet --sim --share "$work/share" --class $class -- "$programs/gated" holds <go >$class.out 2>&1 &
		eval "$(echo $class | tr -d -)=$!"
	done
	exec 9>go
	for class in latency best-effort; do
		until grep -q inside $class.out; do sleep 0.05; done
	done
	"$weir" top --share "$work/share" --json --interval 50ms >top.out 2>&1 9>&- &
	top=$!
	"$weir" monitor -q --share "$work/share" --listen 127.0.0.1:0 --interval 50ms >monitor.out 2>&1 9>&- &
	monitor=$!
	until [ "$(wc -l <top.out)" -gt 5 ]; do sleep 0.05; done
	change
	lines=$(wc -l <top.out)
	until [ "$(wc -l <top.out)" -gt $((lines + 20)) ] || ! kill -0 $top 2>/dev/null; do sleep 0.05; done
	comes_now
	is_alive $top top
	is_alive $monitor monitor
	is_alive $latency latency
	is_alive $besteffort best-effort
	exec 9>&-
	wait $latency || failed "the latency program leaves with $?: $(cat latency.out)"
	wait $besteffort || failed "the best-effort program leaves with $?: $(cat best-effort.out)"
	kill $top $monitor
	wait $top $monitor 2>/dev/null
done
[ $bad = 1 ] || rm -rf "$work"
exit $bad
