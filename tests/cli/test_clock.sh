# How fast the clock of a recording passes is known, however short the program and whoever ended it.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
programs=$build/tests/hostile/programs
hook=$build/lib/weir/libweir.so
[ -e "$hook" ] && [ -x "$programs/forever" ] || exit 0
export LD_LIBRARY_PATH="$build/lib/weir/sim"
cd "$scratch" || exit 1

# wall FILE: nanoseconds of a recording; 0 where its clock is not known.
wall() {
	"$weir" report "$1" | grep -q "the clock's speed is not known" && echo 0 && return
	"$weir" report --json "$1" | sed -n 's/.*"wall_ns": \([0-9]*\).*/\1/p' | head -n 1
}

# between LEAST NS MOST
between() {
	[ "$1" -le "$2" ] && [ "$2" -le "$3" ] || expect 0 "$2 ns between $1 and $3" false
}

# Without the launcher: a short program that ends, and one that is killed.
for round in 1 2 3 4 5 6; do
	rm -f short.weir
	before=$(date +%s%N)
	LD_PRELOAD=$hook WEIR=record:$scratch/short.weir "$programs/many_launches" 10 >/dev/null
	after=$(date +%s%N)
	between 1 "$(wall short.weir)" $((after - before))
done
before=$(date +%s%N)
LD_PRELOAD=$hook WEIR=record:$scratch/killed.weir "$programs/forever" &
program=$!
# until_more N: until so many launches have returned.
until_more() {
	while n=$(od -An -tu8 -N8 finished 2>/dev/null | tr -d ' '); [ "${n:-0}" -lt "$1" ]; do sleep 0.01; done
}
until_more 1
begun=$(date +%s%N)
sleep 0.4
ended=$(date +%s%N)
# If there are more attempts than threads, one has begun after that.
until_more "$(($(od -An -tu8 -N8 finished) + 4))"
kill -KILL $program
wait $program 2>/dev/null
after=$(date +%s%N)
between $((ended - begun)) "$(wall killed.weir)" $((after - before))

# In a time namespace CLOCK_MONOTONIC is another, by a day here.
if unshare -T --monotonic 86400 --fork true 2>/dev/null; then
	before=$(date +%s%N)
	"$weir" record -q -o space.weir -- unshare -T --monotonic 86400 --fork \
		"$programs/many_launches" 1000 >/dev/null
	after=$(date +%s%N)
	between 1 "$(wall space.weir)" $((after - before))
	busy=$("$weir" report --json space.weir |
		sed -n 's/.*"cuLaunchKernel".*"total_ns": \([0-9]*\).*/\1/p' | head -n 1)
	between 1 "$busy" $((after - before))
fi
finish
