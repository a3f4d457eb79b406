# The storm's programs under ThreadSanitizer, with an injected library that is built for it: threads.sh BUILD.  They
# launch from threads that come and go, recorded, in flight, with times and stacks, and share a GPU and its memory.  Two
# share it by each policy, while one is killed, its class changes, or handlers of signals launch.  A data race ends a
# program with 66.
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

# together WHAT [STATUS]: $1 of each class, beside each other.  meanwhile() is what happens then, after which one of them
# may leave with STATUS.
together() {
	rm -rf share device
	mkdir -m 700 share
	for class in latency best-effort; do
		truncate -s 0 page.$class
		truncate -s 4096 page.$class
		$shared --share "$PWD/share" --class $class -- $(program page.$class) >out.$class 2>&1 &
		eval "${class%-*}=$!"
	done
	meanwhile
	for class in latency best-effort; do
		eval wait "\$${class%-*}"
		status=$?
		[ $status = 0 ] || [ $status = "${2-0}" ] && ! grep -q ThreadSanitizer out.$class && continue
		echo "$1, $class: it left with $status"
		cat out.$class
		bad=1
	done
}

children() {
	cat "/proc/$1/task/$1/children" 2>/dev/null
}

shared="$run --max-wait 50ms"
export WEIR_SIM="gpu=$PWD/device,time=real,sharing=mps"
program() { echo "$programs/load $1 4 1 1 0 2000"; }
for policy in fit strict fair edf; do
	meanwhile() { "$weir" sched --share share policy $policy >/dev/null; }
	together $policy
done
meanwhile() {
	for to in best-effort latency best-effort latency; do
		for pid in $(children $latency) $(children $best); do
			"$weir" sched --share share set "$pid" $to >/dev/null 2>&1
		done
	done
}
together 'classes change'
for victim in $programs/load weir; do
	for class in latency best; do
		meanwhile() {
			eval "pid=\$$class"
			[ $victim = weir ] || pid=$(children $pid)
			kill -9 $pid 2>/dev/null
		}
		together "${victim##*/} of $class is killed" 137
	done
done
program() { echo "$programs/signal_storm $nested"; }
meanwhile() { :; }
shared="timeout -k 10 60 $weir run --quiet"
export LD_LIBRARY_PATH="$programs/mock"
for nested in '' nested; do
	together "handlers of signals, ${nested:-one by one}"
done
export LD_LIBRARY_PATH="$build/lib/weir/sim"

# The negative controls: a program with a race of its own is found, alone and as one of two.
if [ $bad = 0 ]; then
	timeout 60 $record -- "$programs/races" >out 2>&1
	status=$?
	grep -q 'data race' out || {
		echo "a race is not found: it left with $status"
		exit 1
	}
	program() { echo "$programs/races"; }
	shared=$run
	together races >found
	[ "$(grep -c 'it left with 66' found)" = 2 ] || {
		echo "a race of one of two is not found: $(cat found)"
		exit 1
	}
	bad=0
fi
exit $bad
