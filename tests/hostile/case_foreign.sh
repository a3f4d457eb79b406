# A trace that is another user's, or that others may write to, is not joined: nothing of the program
# goes into it, and the program runs as it would.
. "$(dirname "$0")/paths.sh"
need_hook
[ "$(id -u)" = 0 ] || { echo "needs root, to give a file to another user"; exit 77; }
make_work foreign
cd "$work" || exit 1
bad=0
LD_LIBRARY_PATH=$libs/mock "$weir" record -q --no-pack -o made.weir -- "$programs/many_launches" 10 >/dev/null
# A raw trace that is still recorded, as far as its header says: `state` is 0.
printf '\000\000\000\000' | dd of=made.weir bs=1 seek=52 conv=notrunc 2>/dev/null
for how in owner mode own; do
	rm -f t.weir
	cp made.weir t.weir
	case $how in
	owner) chown 65534 t.weir ;;
	mode) chmod 0666 t.weir ;;
	own) chmod 0600 t.weir ;;
	esac
	before=$(cksum <t.weir)
	LD_LIBRARY_PATH=$libs/mock LD_PRELOAD=$hook WEIR=record:$work/t.weir "$programs/many_launches" 10 \
		>out 2>err || { echo "$how: the program failed"; bad=1; }
	if [ $how = own ]; then # the check can fail: this one is joined, or replaced
		[ "$before" != "$(cksum <t.weir)" ] || { echo "own: nothing was recorded"; bad=1; }
	elif [ $how = owner ]; then
		[ "$before" = "$(cksum <t.weir)" ] || { echo "$how: the program wrote into it"; bad=1; }
	fi
	[ $how != mode ] || [ "$(stat -c %a t.weir)" = 600 ] || [ "$before" = "$(cksum <t.weir)" ] ||
		{ echo "mode: the program joined a file that others may write to"; bad=1; }
done
[ $bad = 0 ] && rm -rf "$work"
exit $bad
