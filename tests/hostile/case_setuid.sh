# A program that runs with more rights than its caller: the dynamic linker ignores LD_PRELOAD, and
# `weir record` must leave it as it is.
. "$(dirname "$0")/paths.sh"
need_hook
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || {
	echo "only root can make one"
	exit 77
}
make_work setuid
chmod 755 "$work"
cd "$work" || exit 1
cp "$programs/no_cuda" setuid_program && chmod 4755 setuid_program
as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
mkdir -m 777 out && cd out || exit 1
$as_nobody ../setuid_program >plain 2>&1
plain=$?
$as_nobody env LD_PRELOAD="$hook" WEIR=record:"$work/out/t.weir" ../setuid_program >with 2>with.err
code=$?
bad=0
if [ $code != $plain ] || ! cmp -s plain with; then
	echo "LD_PRELOAD: status $code, alone $plain: $(cat with with.err)"
	bad=1
fi
if $as_nobody test -x "$weir"; then
	$as_nobody "$weir" record --quiet -o r.weir -- ../setuid_program >with 2>with.err
	code=$?
	if [ $code != $plain ] || ! cmp -s plain with; then
		echo "weir record: status $code, alone $plain: $(cat with with.err)"
		bad=1
	fi
fi
[ $bad = 0 ] && rm -rf "$work"
exit $bad
