# A forked child of a recorded program has hardly more memory of its own than without Weir: what the
# hook knew of its parent is dropped, not written over.
. "$(dirname "$0")/paths.sh"
need_hook
make_work fork_memory
cd "$work" || exit 1
bad=0
MOST=100 # kB more

sync "$hook" # or pages of it that nobody has written to the disk yet count as well
LD_LIBRARY_PATH=$sim "$programs/fork_memory" >plain || {
	rm -rf "$work"
	exit 77
}
for options in "" "--args" "--predict" "--gpu=sample:1" "--flight=16M"; do
	LD_LIBRARY_PATH=$sim "$weir" record -q --sim $options -o t.weir -- "$programs/fork_memory" >with 2>err || bad=1
	more=$(($(cat with) - $(cat plain)))
	echo "${options:-recorded}: $more kB more than $(cat plain)"
	[ "$more" -le $MOST ] || bad=1
	check_readable t.weir || bad=1
	rm -f t.weir
done
[ $bad = 0 ] && rm -rf "$work"
exit $bad
