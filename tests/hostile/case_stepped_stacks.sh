# A signal at every instruction of a launch whose call stack is copied, and a handler that forks there: the child finishes
# the copy where nobody sees it, and nowhere else.  Its call, which is lost, was entered once.  See programs/stepped.c.
. "$(dirname "$0")/paths.sh"
need_hook
make_work stepped_stacks
cd "$work" || exit 1
export LD_LIBRARY_PATH=$libs/mock
env LD_PRELOAD="$hook" NVTX_INJECTION64_PATH="$hook" WEIR="stacks=launch+sync+alloc,record:$work/stacks.weir" \
	"$programs/stepped" stacks >out 2>&1
status=$?
[ $status != 77 ] || { cat out; rm -rf "$work"; exit 77; }
[ $status = 0 ] || { echo "it leaves with status $status: $(cat out)"; exit 1; }
check_readable stacks.weir || { echo "what was entered is not what is here or lost"; exit 1; }
rm -rf "$work"
