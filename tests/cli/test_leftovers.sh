# Nothing stays of a command that was killed, but for the recording; what a program still writes to
# does.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
launches=$build/tests/hostile/programs/many_launches
[ -e "$build/lib/weir/libweir.so" ] && [ -x "$launches" ] || exit 0
export LD_LIBRARY_PATH="$build/lib/weir/sim"
cd "$scratch" || exit 1

# stat_of GO: starts weir stat of a program that waits for the file GO; its scratch is $directory.
stat_of() {
	"$weir" stat -- sh -c "echo \$WEIR >$1.config; while [ ! -e $1 ]; do sleep 0.02; done" \
		>/dev/null 2>&1 &
	while [ ! -s "$1.config" ]; do sleep 0.02; done
	directory=$(sed 's/.*record://; s,/trace$,,' "$1.config")
}

stat_of one
killed=$! left=$directory
stat_of two
living=$! used=$directory
kill -KILL $killed
wait $killed 2>/dev/null
[ -d "$left" ] && [ -d "$used" ] || expect 0 'two scratch directories' false
expect 0 '' "$weir" stat -- true
[ ! -e "$left" ] || expect 0 "$left removed" false
[ -e "$used/trace" ] || expect 0 "$used kept" false
: >one
: >two
wait $living
[ ! -e "$used" ] || expect 0 "$used removed at the end" false

# Whenever weir record is killed, its recording is there and nothing else beside it that stays.
mkdir alone
for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
	"$weir" record -q -o alone/t.weir -- "$launches" 300000 >/dev/null 2>&1 &
	killed=$!
	while [ ! -s alone/t.weir ]; do sleep 0.01; done
	sleep "0.$(printf '%02d' $((round * 7 % 40)))"
	kill -KILL $killed 2>/dev/null
	wait $killed 2>/dev/null
	expect 0 '"calls"' "$weir" report --json alone/t.weir
done
expect 0 '' "$weir" record -q -o alone/t.weir -- "$launches" 10
[ "$(ls alone)" = t.weir ] || expect 0 "t.weir alone: $(ls alone)" false

# An export by name, a database, is killed in the middle: the next one takes its place.
printf 'half' >out.db.unfinished
expect 0 '' "$weir" export -f sqlite -o out.db alone/t.weir
[ "$(ls out.db*)" = out.db ] || expect 0 "out.db alone: $(ls out.db*)" false
finish
