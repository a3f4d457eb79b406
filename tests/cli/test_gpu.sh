# Device times on the simulated driver and its double of CUPTI.
weir=$1
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
weir=$build/bin/weir
[ -e "$build/lib/weir/libweir.so" ] && [ -e "$build/lib/weir/sim/libcupti.so.13" ] || exit 0
app=$build/examples/vecadd
cd "$scratch" || exit 1

# vecadd: 200 launches, 20 launches of graphs of three nodes, 6 copies.
expect 0 '266 of 266 GPU activities joined' sh -c "$weir record --sim --gpu -q -o a.weir -- $app >&2 &&
	$weir report a.weir"
expect 0 '200 kernels agree in name, grid and block' "$weir" report a.weir
expect 0 '; 0 activities began before their call' "$weir" report a.weir
expect 0 '"early_activities": 0' "$weir" report --json a.weir
expect 0 '"joined": 266' "$weir" report --json a.weir
expect 0 '"checked": 200' "$weir" report --json a.weir
expect 0 '"device_kernels": 240' "$weir" report --json a.weir
expect 0 'DtoH, device to pinned' "$weir" report a.weir
expect 0 '"lost": 0' "$weir" report --json a.weir

# The same file before and after it is packed.
expect 0 '266 of 266' sh -c "$weir record --sim --gpu --no-pack -q -o raw.weir -- $app >&2 &&
	$weir report raw.weir"

# A graph of the calls with the device's time in it.
expect 0 'vecadd' "$weir" flame --by=device a.weir

# In a database each kernel of a stream stands beside its launch.
if python3 -c 'import sqlite3' 2>/dev/null; then
	"$weir" export -f sqlite -o a.sqlite a.weir
	expect 0 '^200 200 26 0$' python3 -c "
import sqlite3
db = sqlite3.connect('a.sqlite')
one = lambda q: db.execute(q).fetchone()[0]
print(one('SELECT count(*) FROM work JOIN calls c USING (pid, correlationId) JOIN StringIds s ON s.id = c.nameId '
	  'WHERE kind = \"kernel\" AND value = \"cuLaunchKernel\"'),
      one('SELECT count(*) FROM work WHERE kind = \"kernel\" AND graphId IS NULL AND gridX = 4096'),
      one('SELECT count(*) FROM work WHERE kind = \"memcpy\" AND bytes > 0'),
      one('SELECT count(*) FROM work WHERE kind IN (\"kernel\", \"memcpy\") AND NOT EXISTS '
	  '(SELECT 1 FROM calls c WHERE c.pid = work.pid AND c.correlationId = work.correlationId)'))"
fi

# Small buffers come back while the program runs.
expect 0 '266 of 266' sh -c "WEIR_SIM_CUPTI=buffer=7 $weir record --sim --gpu -q -o b.weir -- $app >&2 &&
	$weir report b.weir"

# If a program is killed, only the last activities are missing, not all: a small buffer is full
# soon.
expect 0 ' [1-9][0-9]* of 1000 kernels have no device times: the program did not end in order' sh -c \
	"$weir record --sim --gpu -q -o k.weir -- $build/tests/cli/programs/steady killed; $weir report k.weir"
expect 0 '^(7[5-9]|[89].|[1-9]..)$' sh -c "$weir report --only gpu_trace --csv k.weir | grep -c nothing"

# Lost records are told, and the others still find their calls.
expect 0 '240 of 240 GPU activities' sh -c "WEIR_SIM_CUPTI=lose=10 $weir record --sim --gpu -q -o c.weir -- $app >&2 &&
	$weir report c.weir"
expect 0 '26 GPU activities were lost' "$weir" report c.weir

# Work that has not ended when the program does is lost, of whatever kind it is, and has no time.
expect 0 '266 of 266 GPU activities' sh -c "WEIR_SIM_CUPTI=unfinished $weir record --sim --gpu -q -o u.weir -- $app >&2 &&
	$weir report u.weir"
expect 0 '4 GPU activities were lost' "$weir" report u.weir

# Without CUPTI some launches are timed with events, and the report says why.
mkdir alone
cp "$build/lib/weir/sim/libcuda.so.1" alone
expect 0 'one launch in 64 is timed with events, as without CUPTI: another tool' sh -c "WEIR_SIM_CUPTI=refuse \
	$weir record --sim --gpu -q -o d.weir -- $app >&2 && $weir report d.weir"
expect 0 'CUPTI refuses to record kernels' sh -c "WEIR_SIM_CUPTI=refuse-kernels \
	$weir record --sim --gpu -q -o e.weir -- $app >&2 && $weir report e.weir"
finish
