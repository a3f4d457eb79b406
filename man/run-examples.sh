# Runs the examples of a manual page, the lines `.Dl $ COMMAND`, on the simulated driver:
# run-examples.sh BUILD PAGE.  ./app is examples/vecadd, app.weir a recording of it,
# gpu.weir one with device times, server.weir one of a server and training.weir one beside it,
# rank0.json and rank1.json what another profiler wrote; train.py is a script; launches.csv a table of launches.
build=$(cd "$1" && pwd) page=$2 served=$(cd "$(dirname "$0")/../tests/golden/serve" && pwd)
[ -e "$build/lib/weir/sim/libcuda.so.1" ] || {
	echo "the simulated driver is not built"
	exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cp "$build/examples/vecadd" app
echo "print(1)" >train.py
"$build/tests/gen-launches" 3000 >launches.csv || exit 1
export PATH="$build/bin:$PATH" LD_LIBRARY_PATH="$build/lib/weir/sim"
export XDG_RUNTIME_DIR="$work" # no programs but these share
weir record --quiet -o app.weir -- ./app >/dev/null || exit 1
weir import --quiet -o gpu.weir "$3" || exit 1
cp "$served/served.weir" server.weir && cp "$served/beside.weir" training.weir || exit 1
cp "$3" rank0.json && cp "$3" rank1.json || exit 1

sed -n 's/^\.Dl \$ //p' "$page" >examples
bad=0
while IFS= read -r line; do
	sh -c "$line" >out 2>&1 </dev/null && continue
	echo "exit status $? of: $line"
	cat out
	bad=1
done <examples
exit $bad
