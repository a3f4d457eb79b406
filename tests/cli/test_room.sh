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
finish
