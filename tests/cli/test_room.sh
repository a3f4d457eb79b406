# Recordings that run out of room, or whose file goes away: the program's end is its own, and what
# happened is said.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
launches=$build/tests/hostile/programs/many_launches
[ -e "$build/lib/weir/libweir.so" ] && [ -x "$launches" ] || exit 0
export LD_LIBRARY_PATH="$build/lib/weir/sim"
cd "$scratch" || exit 1

expect 2 'at least 8.00 MiB' "$weir" record --max-size=1M -- true
expect 2 'min-free=much: give a size' "$weir" record --min-free=much -- true
expect 2 'Give one of them' "$weir" record --flight=64M --max-size=64M -- true

# Neither the trace nor the program is harmed by the limit, and it is said here and there.
expect 0 'stopped before the program ended: the trace had reached 8.00 MiB' \
	"$weir" record -o size.weir --max-size=8M -- "$launches" 3000000
expect 0 'recording stopped after .*the size that was asked for' "$weir" report size.weir
expect 0 '"lost": 0' "$weir" report --json size.weir
[ "$(stat -c %s size.weir)" -le 8388608 ] || expect 0 'a trace of 8M at most' false
# The program ends its recording in time itself: weir record may not run meanwhile.
expect 0 'stopped before the program ended: the trace had reached 8.00 MiB' "$weir" record -o size.weir --max-size=8M -- \
	sh -c 'kill -STOP $PPID; "$0" 3000000; kill -CONT $PPID' "$launches"
expect 0 '"lost": 0' "$weir" report --json size.weir
[ "$(stat -c %s size.weir)" -le 8388608 ] || expect 0 'a trace of 8M at most, unwatched' false
expect 0 'stopped before .* free on the disk of free.weir' \
	"$weir" record -o free.weir --min-free=1000T -- "$launches" 2000000
expect 0 'its disk was nearly full' "$weir" report free.weir
expect 0 '[0-9] calls, .* 0 lost' "$weir" record -o all.weir --min-free=0 -- "$launches" 1000

# The file is removed, replaced or cut off by somebody.
mkdir gone
gone() {
	said=$1
	shift
	rm -f t.weir
	expect 0 "t.weir was $said while the program ran" \
		"$weir" record -o t.weir -- sh -c "$*; exec $launches 1000"
}
gone removed 'rm t.weir'
gone replaced 'mv t.weir u.weir; echo >t.weir'
gone 'cut off' ': >t.weir'
gone 'cut off' 'truncate -s 0 t.weir'
rm -f t.weir
expect 0 't.weir: the file was cut off; .* could not be read' \
	"$weir" record -o t.weir -- sh -c "$launches 100000; truncate -s 180000 t.weir"
# A program that is killed when it has taken room in the file, and none is allocated yet, has not cut it off.
inject=$build/tests/faults/inject
for n in 2 4; do
	[ -x "$inject" ] || break # it is there on x86-64
	timeout 60 "$inject" log hook fallocate $n kill "$weir" record -q -o killed.weir -- "$launches" 100000 >killed 2>&1
	expect 0 '^fault$' cat log
	expect 1 '^0$' grep -c 'cut off' killed
	expect 0 '"calls": [0-9]' "$weir" report --json killed.weir
done
expect 0 'was removed' "$weir" record -o gone/t.weir -- sh -c 'rm -r gone'

# No recording of before stays under the name that was asked for, and that nothing was recorded is said with -q.
older() {
	rm -f old.weir*
	"$weir" record -q -o old.weir -- "$launches" 1000 >/dev/null || expect 0 'an older recording' false
}
for how in --no-pack --flight=64M; do
	older
	expect 0 'no CUDA call was seen' "$weir" record -q $how -o old.weir -- true
	expect 0 '"calls": 0,' "$weir" report --json old.weir
	expect 0 'made no CUDA calls' "$weir" report old.weir
	[ "$(ls old.weir*)" = old.weir ] || expect 0 "old.weir alone: $(ls old.weir*)" false
	older
	expect 127 'the older recording old.weir was removed' "$weir" record -q $how -o old.weir -- ./no-such
	expect 1 '^$' sh -c 'ls old.weir* 2>/dev/null | grep .'
	older
	expect 126 'the older recording old.weir was removed' "$weir" record -q $how -o old.weir -- /etc/passwd
	expect 1 '^$' sh -c 'ls old.weir* 2>/dev/null | grep .'
	older
	expect 137 '' sh -c "$weir record -q $how -o old.weir -- sh -c 'kill -KILL \$PPID' 2>/dev/null"
	expect 1 '^$' sh -c "$weir report --json old.weir 2>/dev/null | grep '\"launches\": 1000'"
	rm -f old.weir*
	expect 0 '^$' sh -c "$weir record -q $how -o old.weir -- $launches 10 2>&1 >/dev/null"
	expect 0 '"launches": 10,' "$weir" report --json old.weir
done
# Questions that make no sense touch nothing, and what is no recording stays.
older
expect 2 'is no level' "$weir" record --level=x -o old.weir -- true
expect 0 '"launches": 1000' "$weir" report --json old.weir
echo hello >text
expect 3 'text is there and is no trace' "$weir" record -q --flight=64M -o text -- true
expect 0 '^hello$' cat text
expect 0 '^$' sh -c "$weir record -q --level=off -o off.weir -- true 2>&1"

# Why nothing can be seen of a program.
if printf 'int main(void) { return 0; }' | cc -static -x c -o static - 2>/dev/null; then
	expect 0 'static is linked statically: nothing can be loaded' "$weir" record -o s.weir -- ./static
	expect 0 'static is linked statically' "$weir" stat -- ./static
	expect 0 'static is linked statically' "$weir" trace -- ./static
fi

# Lines of calls are their owner's alone, and not written through a link.
(umask 0 && "$weir" trace -o lines -- "$launches" 1 >/dev/null 2>&1)
[ "$(stat -c %a lines)" = 600 ] || expect 0 "lines of mode 600: $(stat -c %a lines)" false
ln -s elsewhere link
expect 3 'link can.t be written' "$weir" trace -o link -- true
expect 0 'cuInit' "$weir" trace -o /dev/stderr -- "$launches" 1
finish
