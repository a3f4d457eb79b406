# What recording costs: bench.sh BUILD.  Nanoseconds that are added to a call, then what the library
# costs a program that uses no CUDA at all.  On the simulated driver when there is no GPU.
build=$(cd "$1" && pwd) || exit 1
sim=
ls /dev/nvidia[0-9]* >/dev/null 2>&1 || sim=--sim
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

for call in launch query current; do
	printf '\n%s, one thread\n' $call
	"$build/bin/weir" record $sim --quiet --level=all -o t.weir -- \
		"$build/bin/bench-launch" -c $call t.weir || exit 1
done

nanoseconds() {
	begin=$(date +%s%N)
	i=0
	while [ $i -lt 200 ]; do
		"$@" >/dev/null
		i=$((i + 1))
	done
	echo $((($(date +%s%N) - begin) / 200))
}

echo
echo "a program without CUDA (/bin/true), microseconds a start, five rounds:"
for round in 1 2 3 4 5; do
	plain=$(nanoseconds env /bin/true)
	with=$(nanoseconds env LD_PRELOAD="$build/lib/weir/libweir.so" WEIR=record:t.weir /bin/true)
	printf '  %5d without, %5d with libweir.so\n' $((plain / 1000)) $((with / 1000))
done
