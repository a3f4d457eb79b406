# Runs each fuzz target of a build for some seconds: fuzz.sh BUILD SECONDS.  New inputs go to
# BUILD/corpus; an input that breaks a target stays there as crash-*.  Without -entropic=0 libFuzzer
# takes up to two thirds of the time to choose what to change next.
build=$1 seconds=$2
here=$(dirname "$0")/..
for target in $(find "$build" -name 'fuzz_*' -type f -perm -u+x); do
	name=$(basename "$target" | sed s/fuzz_//)
	mkdir -p "$build/corpus/$name"
	echo "$name: $seconds seconds"
	"$target" -max_total_time="$seconds" -entropic=0 -close_fd_mask=3 -artifact_prefix="$build/corpus/" \
		"$build/corpus/$name" "$here/tests/fuzz/corpus/$name" 2>"$build/corpus/$name.log" || {
		tail -n 30 "$build/corpus/$name.log"
		exit 1
	}
	grep -h 'Done' "$build/corpus/$name.log"
done
