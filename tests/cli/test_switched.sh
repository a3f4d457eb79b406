# GPU activities of a recording that is switched off and on again, or stopped, while CUPTI goes on: each
# that is shown belongs to a launch that was recorded, and a launch without one is told.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
parts=$build/tests/cli/programs/parts
[ -e "$build/lib/weir/libweir.so" ] && [ -e "$build/lib/weir/sim/libcupti.so.13" ] && [ -x "$parts" ] || exit 0
cd "$scratch" || exit 1

# The program waits behind each step until it is told to go on.
step_on() {
	i=0
	while [ $((i += 1)) -le "$1" ]; do
		: >go
		while [ ! -e go.done ]; do sleep 0.02; done
		rm go.done
	done
}
begin() {
	LD_LIBRARY_PATH=$build/lib/weir/sim "$weir" record -g -q "$@" -- "$parts" go >/dev/null &
	step_on 2
}
number() {
	grep -oE "$1" report.json | head -1 | grep -oE '[0-9]+' | head -1
}
# Whether a report adds up, and of the 155 launches those that are neither recorded nor left out.
adds_up() {
	"$weir" report --json "$1" >report.json || return
	launches=$(number '"launches": [0-9]+')
	timed=$(number '"device_kernels": [0-9]+')
	untimed=$(number '[0-9]+ of [0-9]+ kernels have no device times')
	left=$(number '[0-9]+ GPU activities were left out')
	[ "$(number '"joined": [0-9]+')" = "$(number '"activities": [0-9]+')" ] && echo joined
	[ $((timed + ${untimed:-0})) = "$launches" ] && echo "timed, ${untimed:-0} not"
	echo "$((155 - launches - ${left:-0})) elsewhere"
}
sums() {
	adds_up "$1" | tr '\n' ';'
}

for packed in '' --no-pack; do
	begin $packed -o off.weir
	live=$(ls off.weir* | head -1)
	expect 0 '^$' "$weir" ctl $live off
	step_on 3
	expect 0 '^$' "$weir" ctl $live on
	step_on 2
	expect 0 '^$' "$weir" ctl $live off
	step_on 1
	expect 0 '^$' "$weir" ctl $live on
	step_on 2
	wait
	expect 0 '^joined;timed, 0 not;0 elsewhere;$' sums off.weir
	expect 0 '[0-9]+ GPU activities were left out: they were launched while recording was switched off' \
		"$weir" report off.weir
	# Why nothing ran then nobody knows, and it is not said to be the host.
	expect 0 ' not recorded: switched off$' "$weir" report off.weir
	# Time while recording was switched off is no time in which a device could have been seen to
	# be busy.
	expect 0 '^ +device +busy +busy share +kernels' "$weir" report off.weir
	rm -f off.weir
done

# Work that ran before the stop has its times, though CUPTI tells of it at the end.
begin -o stop.weir
expect 0 '^$' "$weir" ctl stop.weir stop
step_on 8
wait
expect 0 '^joined;timed, 0 not;' sums stop.weir
expect 0 '"launches": [36],' "$weir" report --json stop.weir

# A program that is killed takes along what CUPTI had not handed over.
LD_LIBRARY_PATH=$build/lib/weir/sim "$weir" record -g -q -o killed.weir -- \
	sh -c "echo \$\$ >pid; exec $parts go" >/dev/null 2>&1 &
step_on 2
expect 0 '^$' "$weir" ctl killed.weir stop
kill -9 "$(cat pid)"
wait
expect 0 '^joined;timed, [0-9]+ not;|^timed, [36] not;' sums killed.weir
finish
