# A program that shuts itself in while it is recorded: what is missing is counted, and the report
# says why.
set -u
. "$(dirname "$0")/paths.sh"
need_hook
make_work sandboxed
cd "$work" || exit 1
LD_LIBRARY_PATH=$libs/mock "$weir" record -o t.weir -- "$programs/sandboxed" after kill >out 2>err
status=$?
[ $status = 77 ] && exit 77
"$weir" report t.weir >report 2>&1
kept=$(recorded_count t.weir cuLaunchKernel)
lost=$("$weir" report --json t.weir | sed -n 's/^[^a-z]*"lost": \([0-9]*\),*$/\1/p' | head -n 1)
bad=0
[ $status = 3 ] || { echo "it left with $status, not with 3" && bad=1; }
[ $((kept + ${lost:-0})) = 200100 ] || { echo "$kept kept and $lost lost are not 200100" && bad=1; }
grep -q 'system-call filter' err || { echo "weir record does not say why" && bad=1; }
grep -q 'system-call filter' report || { echo "the report does not say why" && bad=1; }
[ $bad = 1 ] || rm -rf "$work"
exit $bad
