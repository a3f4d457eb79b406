# The storm's programs under ThreadSanitizer, with an injected library that is built for it: threads.sh BUILD.  They
# launch from threads that come and go, recorded, in flight, with times and stacks, and share a GPU and its memory.  A
# data race ends a program with 66.
set -u
build=$(cd "$1" && pwd)
programs=$build/tests/storm
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export LD_LIBRARY_PATH="$build/lib/weir/sim" TSAN_OPTIONS="exitcode=66"
bad=0

# try WHAT COMMAND...: no race, in no process.
try() {
	what=$1
	shift
	truncate -s 0 page
	truncate -s 4096 page
	timeout 60 "$@" >out 2>&1 </dev/null
	status=$?
	if [ $status != 0 ] || grep -q ThreadSanitizer out; then
		echo "$what: it left with $status"
		cat out
		bad=1
	fi
}

weir=$build/bin/weir record="$build/bin/weir record --sim -o t.weir" run="$build/bin/weir run --quiet --sim"
try 'recorded' $record -- "$programs/load" page 8 1 2 1 4000
"$weir" report t.weir >report || bad=1
grep -q ' 0 lost' out || {
	cat out
	bad=1
}
try 'with times' $record --gpu -- "$programs/load" page 8 1 0 0 4000
try 'with stacks' $record --stacks -- "$programs/load" page 4 1 1 0 1000
try 'in flight' $record --flight 1M -- "$programs/load" page 8 1 2 0 8000
try 'latency' $run --class latency -- "$programs/load" page 4 1 2 0 2000
try 'quota' $run --memory 256M -- "$programs/quota" crowd
for each in threads many_streams captures captures_free own_stream; do
	try "pool, $each" $run --memory 1G --pool -- "$programs/served" $each
done

# The negative control: a program with a race of its own is found.
if [ $bad = 0 ]; then
	timeout 60 $record -- "$programs/races" >out 2>&1
	status=$?
	if ! grep -q 'data race' out; then
		echo "a race is not found: it left with $status"
		bad=1
	fi
fi
exit $bad
