# Places where a trace can't be written, or not for long: the program must not notice.
. "$(dirname "$0")/paths.sh"
need_hook
make_work disk
cd "$work" || exit 1
bad=0
export LD_LIBRARY_PATH=$sim

# silent WHAT FILE COMMAND...: the program under Weir says and does what it does alone.
silent() {
	what=$1 file=$2
	shift 2
	timeout 60 env LD_PRELOAD="$hook" WEIR="record:$file" "$@" >out 2>err
	code=$?
	[ "$what" != "unusable name" ] || sed -i '/^weir: WEIR=/d' err
	if [ $code != 0 ] || [ -s err ] || grep -qv '^0 failed$\|^removed: 0$' out; then
		echo "$what: status $code, $(cat out err | cut -c 1-200)"
		bad=1
	fi
}

# A file that is no regular one is somebody else's and stays what it is.
stays() {
	what=$1 file=$2
	before=$(stat -c '%F %t:%T %i' "$file")
	silent "$what" "$work/$file" "$programs/many_launches" 1000
	[ "$(stat -c '%F %t:%T %i' "$file")" = "$before" ] || {
		echo "$what: was replaced"
		bad=1
	}
	"$weir" record --quiet -o "$work/$file" -- true >out 2>&1
	[ "$(stat -c '%F %t:%T %i' "$file")" = "$before" ] || {
		echo "$what: was replaced by weir record"
		bad=1
	}
}

silent "no such directory" "$work/absent/t.weir" "$programs/many_launches" 1000
mkdir readonly && chmod 555 readonly
silent "read-only directory" "$work/readonly/t.weir" "$programs/many_launches" 1000
silent "a directory of that name" "$work/readonly" "$programs/many_launches" 1000
silent "unusable name" "" "$programs/many_launches" 1000
silent "a file of the kernel" /proc/self/status "$programs/many_launches" 1000
mkfifo fifo && stays "a fifo" fifo
ln -s elsewhere link && stays "a symbolic link" link
[ "$(id -u)" = 0 ] && mknod device c 1 3 2>/dev/null && stays "a device" device
mkdir gone
silent "directory removed" "$work/gone/t.weir" "$programs/many_launches" 20000 "rm -r $work/gone"
rm -rf gone

# A path of more than PATH_MAX bytes, and one that is just deep.
deep=$work part=$(printf '%0200d' 0)
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do deep=$deep/$part; done
mkdir -p "$deep"
silent "deep directory" "$deep/t.weir" "$programs/many_launches" 1000
[ "$(recorded_count "$deep/t.weir" cuLaunchKernel)" = 1000 ] || {
	echo "deep directory: not recorded"
	bad=1
}
silent "unusable name" "$deep/$deep/$deep/t.weir" "$programs/many_launches" 1000

# A file system with room for little: what fits is there, the rest is counted.
mkdir small
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=512k none small 2>/dev/null; then
	silent "full disk" "$work/small/t.weir" "$programs/many_launches" 50000
	check_readable small/t.weir || bad=1
	have=$(recorded_count small/t.weir cuLaunchKernel)
	if [ "$have" -lt 1000 ] || [ "$have" -ge 50000 ]; then
		echo "full disk: $have launches recorded"
		bad=1
	fi
	umount small
else
	echo "no small file system to fill: left out"
fi
[ $bad = 0 ] && rm -rf "$work"
exit $bad
