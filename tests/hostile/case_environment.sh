# The user's settings stay, for the program and for its children; `weir record` adds its own.
. "$(dirname "$0")/paths.sh"
need_hook
make_work environment
cd "$work" || exit 1
bad=0

expect() {
	[ "$2" = "$3" ] && return
	echo "$1: '$2', expected '$3'"
	bad=1
}

value() {
	"$weir" record --quiet -o t.weir -- sh -c "printf '%s' \"\${$1-unset}\""
}

export LD_PRELOAD=$libs/libnext.so
case $(value LD_PRELOAD) in
"$LD_PRELOAD:$hook" | "$hook:$LD_PRELOAD" | "$hook $LD_PRELOAD" | "$LD_PRELOAD $hook") ;;
*) expect "LD_PRELOAD of the user is kept" "$(value LD_PRELOAD)" "with $LD_PRELOAD" ;;
esac
unset LD_PRELOAD
export LD_LIBRARY_PATH=/nowhere
expect "LD_LIBRARY_PATH" "$(value LD_LIBRARY_PATH)" /nowhere
unset LD_LIBRARY_PATH
expect "exit status" "$("$weir" record -q -o t.weir -- sh -c 'exit 37'; echo $?)" 37
expect "exit by signal" \
	"$(sh -c "$weir record -q -o t.weir -- sh -c 'kill -TERM \$\$'; echo \$?" 2>/dev/null)" 143
expect "arguments" "$("$weir" record -q -o t.weir -- printf '%s,' a 'b c' '' --quiet)" 'a,b c,,--quiet,'
expect "standard input" "$(echo hello | "$weir" record -q -o t.weir -- cat)" hello
"$weir" record -q -o t.weir -- ./no-such-program >out 2>&1
expect "a program that is not there" "$?" 127
grep -q no-such-program out || expect "its name is said" "$(cat out)" no-such-program
: >not-executable
"$weir" record -q -o t.weir -- ./not-executable >out 2>&1
expect "a file that is not executable" "$?" 126

# A directory that has no name any more: that is said, and not something else.
long=$(printf '%05000d' 0)
nameless() { # WEIR'S FILE, WHY
	said=$(mkdir "$work/gone" && cd "$work/gone" && rmdir "$work/gone" &&
		LD_PRELOAD=$hook WEIR=record:$1 "$programs/no_cuda" 2>&1 >/dev/null)
	case $said in *"$2"*) ;; *) expect "WEIR=record:$(printf %.9s "$1") says why" "$said" "$2" ;; esac
}
nameless t.weir "the working directory has no name any more"
nameless "" "the file name is missing;"
nameless "/$long" "the file name is too long;"
said=$(mkdir "$work/gone" && cd "$work/gone" && rmdir "$work/gone" &&
	"$weir" record -q --predict --history=h -o "$work/t.weir" -- true 2>&1)
case $said in *"whole path of h is unknown"*) ;; *) expect --history "$said" "the path is not known" ;; esac
# One that is not mounted any more has files, but no path.
if unshare -m true 2>/dev/null; then
	mkdir mount
	said=$(unshare -m sh -c 'mount -t tmpfs none mount && cd mount && umount -l ../mount &&
		"$1" record -q -o t.weir -- true' sh "$weir" 2>&1)
	case $said in *"whole path of t.weir is unknown"*) ;; *) expect unmounted "$said" "the path is not known" ;; esac
	said=$(unshare -m sh -c 'mount -t tmpfs none mount && cd mount && umount -l ../mount &&
		LD_PRELOAD=$1 WEIR=record:t.weir "$2"' sh "$hook" "$programs/no_cuda" 2>&1 >/dev/null)
	case $said in *"has no name any more"*) ;; *) expect "unmounted, preloaded" "$said" "no name" ;; esac
fi
[ $bad = 0 ] && rm -rf "$work"
exit $bad
