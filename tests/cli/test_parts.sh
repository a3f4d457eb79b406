# Parts of a run: what --capture, --delay, --duration, --until-launches and weir ctl stop record, by the
# program parts, whose step i launches i kernels.
weir=$1
. "$(dirname "$0")/expect.sh"
source=$(cd "$2" && pwd)
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
parts=$build/tests/cli/programs/parts
[ -e "$build/lib/weir/libweir.so" ] && [ -e "$build/lib/weir/sim/libcuda.so.1" ] && [ -x "$parts" ] || exit 0
cd "$scratch" || exit 1

# How many launches and calls a recording of a part has.
launches() {
	rm -f part.weir
	"$weir" record --sim -q -o part.weir "$@" -- "$parts" >/dev/null || return
	"$weir" report --json part.weir | grep -oE '^		"(launches|missing|surplus)": [0-9]+' | tr -d '\t'
}
whole() {
	launches "$@" | tr '\n' ' '
}
expect 0 '^"launches": 155 "missing": 0 "surplus": 0 $' whole
expect 0 '^"launches": 15 "missing": 0 "surplus": 0 $' whole --capture=profiler
expect 0 '^"launches": 7 "missing": 0 "surplus": 0 $' whole --capture=range:inner
expect 0 '^"launches": 5 "missing": 0 "surplus": 0 $' whole --capture=range:spanned
expect 0 '^"launches": 55 "missing": 0 "surplus": 0 $' whole --capture=range:step
expect 0 '^"launches": 0 "missing": 0 "surplus": 0 $' whole --capture=range:ste
expect 0 '^"launches": 18 "missing": 0 "surplus": 0 $' whole --capture=step:5-7
expect 0 '^"launches": 3 "missing": 0 "surplus": 0 $' whole --capture=step:1-2
expect 0 '^"launches": 4 "missing": 0 "surplus": 0 $' whole --capture=step:4
expect 0 '^"launches": 155 "missing": 0 "surplus": 0 $' whole --capture=step:1-99
expect 0 '^"launches": 0 "missing": 0 "surplus": 0 $' whole --capture=step:50-99
expect 0 '^"launches": 18 "missing": 0 "surplus": 0 $' whole --capture=step:5-7 --level=all
expect 0 '^"launches": 18 "missing": 0 "surplus": 0 $' whole --capture=step:5-7 --level=stat
expect 0 '^"launches": 7 "missing": 0 "surplus": 0 $' whole --capture=range:inner --level=stat
expect 0 '^"launches": 20 "missing": 0 "surplus": 0 $' whole --until-launches=20
expect 0 '^"launches": 20 "missing": 0 "surplus": 0 $' whole --until-launches=20 --level=stat
expect 0 '^"launches": 6 "missing": 0 "surplus": 0 $' whole --capture=step:3-10 --until-launches=6
expect 0 '^"launches": 0 "missing": 0 "surplus": 0 $' whole --delay=1m
expect 0 '^"launches": 155 "missing": 0 "surplus": 0 $' whole --delay=1ns
# The clock is looked at behind each call: the first is there.
expect 0 '^"launches": 1 "missing": 0 "surplus": 0 $' whole --capture=step:2 --duration=1ns
expect 0 '^"launches": 155 "missing": 0 "surplus": 0 $' whole --duration=10m
# The duration counts from the end of the delay.
expect 0 '^"launches": 155 "missing": 0 "surplus": 0 $' whole --delay=1ns --duration=10m
expect 0 '^"launches": 18 "missing": 0 "surplus": 0 $' whole --delay=1ns --duration=10m --capture=step:5-7
# A part that never begins is said to be that, and which it was.
never() {
	rm -f part.weir
	"$weir" record --sim -o part.weir "$@" -- "$parts" 2>&1 || return
	"$weir" report part.weir
}
outside='[Cc]alls outside of it are not recorded'
expect 0 "^weir: the part that was asked for never began \(--capture=range:foo\). $outside. Leave" never --capture=range:foo
expect 0 "^The part that was asked for never began \(--capture=range:foo\). $outside\.$" "$weir" report part.weir
expect 0 "^The part .* never began \(--capture=step:50-99\). $outside\.$" never --capture=step:50-99
expect 0 "^weir: the part .* never began \(--delay=1m\)" never --delay=1m
expect 0 '^The part .* never began \(--delay of 60.0 s\)' "$weir" report part.weir
expect 0 '^weir: the part .* never began \(--capture=range:foo --delay=1m\)' never --capture=range:foo --delay=1m
expect 0 '^The part .* never began \(--capture=range:foo, --delay of 60.0 s\)' "$weir" report part.weir
expect 0 '^$' sh -c "$weir record --sim -o part.weir --capture=profiler -- $build/examples/vecadd 2>&1 | grep 'no CUDA call was seen' || :"
expect 0 "^The part .* never began \(--capture=profiler\)" "$weir" report part.weir
# A program that does not come to CUDA is another thing.
expect 0 'no CUDA call was seen' "$weir" record --sim -o none.weir --capture=profiler -- true
# Each forked process has its own.
expect 0 '^"launches": 30 "missing": 0 "surplus": 0 $' sh -c "
	$weir record --sim -q -o two.weir --capture=profiler -- sh -c '$parts & $parts; wait' >/dev/null
	$weir report --json two.weir | grep -oE '^..\"(launches|missing|surplus)\": [0-9]+' | tr -d '\t' | tr '\n' ' '"

# The program does the same, and its exit status is its own.
expect 7 '^$' "$weir" record --sim -q -o seven.weir --capture=step:2 -- sh -c "$parts; exit 7"

# Nonsense is refused before anything runs.
expect 2 'capture=steps: give profiler, range:NAME or step:N-M' "$weir" record --capture=steps -- "$parts"
expect 2 'capture=step:9-2: give the first and the last step' "$weir" record --capture=step:9-2 -- "$parts"
expect 2 'capture=range:: give a range.s name' "$weir" record --capture=range: -- "$parts"
expect 2 'capture=range:a,b: give a range.s name' "$weir" record --capture=range:a,b -- "$parts"
expect 2 'delay=5: give a time' "$weir" record --delay=5 -- "$parts"
expect 2 'until-launches=0' "$weir" record --until-launches=0 -- "$parts"
expect 2 'level=off records nothing' "$weir" record --level=off --delay=1s -- "$parts"

# A recording is stopped while the program goes on, and stays stopped.
LD_LIBRARY_PATH=$build/lib/weir/sim "$weir" record --no-pack -o stop.weir -- "$parts" go >/dev/null 2>said &
step_on() {
	: >go
	while [ ! -e go.done ]; do sleep 0.02; done
	rm go.done
}
step_on
step_on
expect 0 '^$' "$weir" ctl stop.weir stop
expect 1 'was stopped, and can.t be switched on again' "$weir" ctl stop.weir on
expect 1 'was stopped' "$weir" ctl stop.weir status
i=0
while [ $((i += 1)) -le 8 ]; do step_on; done
wait
expect 0 'as weir ctl asked' cat said
expect 0 'weir ctl asked for it' "$weir" report stop.weir
# Two steps and what stood in the third.
expect 0 '"launches": [36],' "$weir" report --json stop.weir

# A recording is read in part.  A part that was recorded is as long as it was, not as the run.
"$weir" record --sim -q -o all.weir -- "$parts" >/dev/null || exit 1
part() {
	"$weir" report --json "$@" all.weir | grep -oE '"launches": [0-9]+'
}
expect 0 '^"launches": 155$' part
expect 0 '^"launches": 7$' part --steps 3-4
expect 0 '^"launches": 100$' part --steps 11
expect 0 '^"launches": 7$' part --range inner
expect 0 '^"launches": 3$' part --range inner --steps 1-3
expect 0 '^"launches": 0$' part --before 1ns
expect 0 '^"launches": 155$' part --after 1ns
expect 2 'only 11 steps' "$weir" report --steps 12-14 all.weir
expect 0 'read in part .*; range inner: calls made while it was open, and the GPU work that they launched' \
	"$weir" report --range inner all.weir
# Kernels are those that the calls of the range launched, also when they run behind it.
expect 0 '^"launches": 1800 "device_kernels": 1800 $' sh -c \
	"'$weir' report --json --range cub::DeviceRadixSort '$source/tests/golden/problems/loader.weir' |
		grep -oE '\"(launches|device_kernels)\": [0-9]+' | grep -v ': 0' | head -n 2 | tr '\n' ' '"
# Work that was launched before a part ends the critical path: its parts add up.
for name in leak tail default_stream; do
	expect 1 '' sh -c "'$weir' report --after 260ms --before 270ms '$source/tests/golden/problems/$name.weir' 2>&1 |
		grep 'checks of weir'"
done
expect 2 'no range nope in the trace; there are' "$weir" report --range nope all.weir
expect 0 'all.weir is read in part, .* of .*: steps 3 to 4 of 11' "$weir" hints --steps 3-4 all.weir
expect 0 'This is a part of the recording, .* of .*; steps 3 to 4 of 11' "$weir" report --only kernels --steps 3-4 all.weir
expect 2 'steps=4-2: give the numbers of the first' "$weir" hints --steps 4-2 all.weir
expect 2 'before is not later' "$weir" flame --after 2s --before 1s -f folded all.weir
expect 2 'after=soon: give a time' "$weir" memory --after soon all.weir
expect 0 '^No CUDA calls are in the part that is read' "$weir" report --before 1ns all.weir
expect 0 'read in part .* steps 3 to 4 of 11' "$weir" report --steps 3-4 all.weir
expect 0 'parts +10, with the time between them left out' "$weir" report --range step all.weir
expect 0 'left out as warm-up' "$weir" report --steady all.weir
expect 0 '^7$' sh -c "$weir export -f csv --steps 3-4 all.weir | grep -c cuLaunchKernel"
expect 0 '^7$' sh -c "$weir export -f chrome --range inner all.weir | grep -c '\"name\":\"cuLaunchKernel'"
expect 0 'cuLaunchKernel;nothing' "$weir" flame --by host -f folded --steps 2 all.weir
expect 0 '^1$' sh -c "$weir html --steady all.weir -o - 2>/dev/null | grep -cE 'of 11; the first [a-z0-9 ]+ left out as warm-up'"
expect 0 'all.html' sh -c "$weir html --steady -o all.html all.weir && ls"
# So are both sides of a comparison.
expect 0 'all.weir is read in part, .*: steps 3 to 4 of 11' "$weir" diff --steps 3-4 all.weir all.weir
expect 2 'only 11 steps' "$weir" diff --steps 12 all.weir all.weir
# Memory that was live before is live in the part.
"$weir" record --sim -q -o app.weir -- "$build/examples/vecadd" >/dev/null || exit 1
expect 0 '^ +6 +0 +24.0 MiB +24.0 MiB +24.0 MiB +6 +device$' "$weir" memory --steps 2 app.weir
expect 0 '"alloc_count": 6' "$weir" memory --json --steps 2 app.weir
# The part that was recorded is read as it is packed, and packed as it was recorded.
"$weir" record --sim -q --no-pack --capture=range:inner -o raw.weir -- "$parts" >/dev/null || exit 1
"$weir" record --sim -q --capture=range:inner -o packed.weir -- "$parts" >/dev/null || exit 1
for file in raw packed; do
	expect 0 '"launches": 7,' "$weir" report --json $file.weir
	expect 0 '"parts": 1, "how": ""' "$weir" report --json $file.weir
	expect 0 'recorded in part .* of .*, from ' "$weir" report $file.weir
	expect 0 'read in part .*; steps 2 to 2 of 2' "$weir" report --steps 2 $file.weir
	expect 0 '"launches": 4,' "$weir" report --json --steps 2 $file.weir
done

# Other tools' files are read as they are, and so is standard input.
json=$source/tests/golden/kineto/eager.json
expect 0 'kernels run +15' "$weir" report "$json"
expect 0 'kernels run +15' sh -c "$weir report - <$json"
expect 0 'kernels run +15' sh -c "cat $json | $weir report -"
expect 0 'kernels run +15' sh -c "gzip -c $json | $weir report -"
expect 0 'kernels run +155' sh -c "cat all.weir | $weir report -"
expect 0 'aten::linear' "$weir" flame -f folded "$json"
expect 0 'cuLaunchKernel' "$weir" export -f csv "$json"
expect 0 '^Kernels: 12 undecided\.' "$weir" diff "$json" "$json"
expect 2 'standard input is empty' sh -c ": | $weir report -"
expect 2 'hello is neither JSON' sh -c "echo hi there >hello; $weir report hello"

# A recording is no program, found in PATH or not.
for command in record trace stat; do
	expect 127 'all.weir is a recording, not a program. .*weir report all.weir. .* .weir export -f csv all.weir' \
		"$weir" $command all.weir
	expect 126 './all.weir is a recording, not a program' "$weir" $command -- ./all.weir
done

# Recordings of several ranks are read as one.
for rank in 0 1 2; do
	"$weir" record --sim -q -o rank$rank.weir -- "$parts" >/dev/null || exit 1
done
expect 0 '"launches": 465,' "$weir" report --json rank0.weir rank1.weir rank2.weir
expect 0 '"processes": 3,' "$weir" report --json rank0.weir rank1.weir rank2.weir
expect 0 '"missing": 0,' "$weir" report --json rank0.weir rank1.weir rank2.weir
expect 0 '^465$' sh -c "$weir export -f csv rank0.weir rank1.weir rank2.weir | grep -c cuLaunchKernel"
expect 0 'cuLaunchKernel;nothing' "$weir" flame --by host -f folded rank0.weir rank1.weir
expect 0 'ranks.html' sh -c "$weir html -o ranks.html rank0.weir rank1.weir && ls"
expect 2 "eager.json can.t be read together with the first" "$weir" report rank0.weir "$source/tests/golden/kineto/eager.json"
expect 2 'absent can.t be read' "$weir" hints rank0.weir absent
expect 2 'rank1.weir is given twice' "$weir" hints rank0.weir rank1.weir rank1.weir

# Names of outputs.
expect 0 'run.7.weir' sh -c "RANK=7 $weir record --sim -q -o run.%q{RANK}.weir -- $parts && ls"
expect 0 "host-$(hostname).weir" sh -c "$weir record --sim -q -o host-%h.weir -- $parts && ls"
expect 0 '^p[0-9]+%.weir$' sh -c "$weir record --sim -q -o p%p%%.weir -- $parts && ls"
expect 0 'run.a_b.weir' sh -c "RANK=a/b $weir record --sim -q -o run.%q{RANK}.weir -- $parts && ls"
expect 2 'NO_SUCH_RANK is not set' "$weir" record -o 'run.%q{NO_SUCH_RANK}.weir' -- "$parts"
expect 2 'behind % stand p' "$weir" record -o 'run.%z.weir' -- "$parts"
expect 2 'in braces' "$weir" record -o 'run.%qRANK.weir' -- "$parts"
finish
