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

expect 2 'at least 8M' "$weir" record --max-size=1M -- true
expect 2 'is no size' "$weir" record --min-free=much -- true
expect 2 'give one of them' "$weir" record --flight=64M --max-size=64M -- true

# Neither the trace nor the program is harmed by the limit, and it is said here and there.
expect 0 'stopped before the program ended: the trace had reached 8.00 MiB' \
	"$weir" record -o size.weir --max-size=8M -- "$launches" 3000000
expect 0 'recording stopped after .*the size that was asked for' "$weir" report size.weir
expect 0 '"lost": 0' "$weir" report --json size.weir
[ "$(stat -c %s size.weir)" -le 8388608 ] || expect 0 'a trace of 8M at most' false
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
expect 0 'was removed' "$weir" record -o gone/t.weir -- sh -c 'rm -r gone'

# A recording of before stays until there is another to take its place.
rm -f old.weir*
expect 0 '1,000 of them launches' "$weir" record -o old.weir -- "$launches" 1000
expect 0 'old.weir is still the older recording' "$weir" record -o old.weir -- true
expect 0 'still the older recording' "$weir" record --flight=64M -o old.weir -- true
expect 0 '"launches": 1000' "$weir" report --json old.weir
expect 0 ' 10 of them launches' "$weir" record -o old.weir -- "$launches" 10
expect 0 '"launches": 10,' "$weir" report --json old.weir
[ "$(ls old.weir*)" = old.weir ] || expect 0 "old.weir alone: $(ls old.weir*)" false

# Killed before the program came to CUDA: the next one decides.
"$weir" record -q -o old.weir -- sh -c ': >started; while [ ! -e go ]; do sleep 0.02; done' &
while [ ! -e started ]; do sleep 0.02; done
kill -KILL $!
wait $! 2>/dev/null
: >go
expect 0 'still the older recording' "$weir" record -o old.weir -- true
expect 0 '"launches": 10,' "$weir" report --json old.weir
[ "$(ls old.weir*)" = old.weir ] || expect 0 "old.weir alone: $(ls old.weir*)" false

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
