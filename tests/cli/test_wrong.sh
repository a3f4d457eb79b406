# Messages about files that are not what they should be, and that nothing is lost by it.
weir=$1
. "$(dirname "$0")/expect.sh"
cd "$scratch" || exit 1
mkdir directory && : >empty && echo hello >text
"$weir" import -q -o gpu.weir "$2/tests/golden/kineto/eager.json" || exit 1
printf 'action,addr,size\nalloc,1,2\n' >table.csv
"$weir" import -q -o plain.weir table.csv || exit 1
head -c 300 gpu.weir >cut.weir

for command in report hints memory html flame; do
	expect 2 'absent can.t be read: No such file' "$weir" "$command" absent
	expect 2 'directory is a directory, not a trace' "$weir" "$command" directory
	expect 2 'empty is empty' "$weir" "$command" empty
	expect 2 'text is (neither JSON, nor an SQLite export|not a trace. Make one)' "$weir" "$command" text
	expect 2 'cut.weir is truncated' "$weir" "$command" cut.weir
done
for command in train predict; do
	expect 2 'absent can.t be read: No such file' "$weir" "$command" absent
	expect 2 'directory is a directory' "$weir" "$command" directory
	expect 2 'empty is empty' "$weir" "$command" empty
	expect 2 "there is no column 'kernel'" "$weir" "$command" text
	expect 2 'has no kernel with a device time' "$weir" "$command" plain.weir
done
expect 2 'text: this is not a model' "$weir" eval text gpu.weir

# Several files: each becomes a trace, and a bad one does not stop the rest.
mkdir ranks && cp "$2/tests/golden/kineto/eager.json" rank0.json && gzip -c rank0.json >rank1.json.gz
cp rank0.json ranks/rank0.json
expect 0 'rank1.weir' "$weir" import rank0.json rank1.json.gz
expect 0 'calls' "$weir" report rank1.weir
expect 2 'text is neither JSON' "$weir" import -o ranks rank0.json text rank1.json.gz
expect 2 '2 of 3 files were imported' "$weir" import -o ranks rank0.json text rank1.json.gz
expect 0 'calls' "$weir" report ranks/rank1.weir
expect 2 'empty is empty: did the profiler' "$weir" import empty rank0.json
expect 2 'directory is a directory, not a trace: name' "$weir" import directory rank0.json
expect 2 'gpu.weir is a trace of Weir.s already: weir report' "$weir" import gpu.weir rank0.json
expect 2 'would both become ./rank0.weir: import one' "$weir" import rank0.json ranks/rank0.json
expect 2 'absent is no directory: several files' "$weir" import -o absent rank0.json rank1.json.gz
expect 2 'FILE is missing' "$weir" import

# Without device times
expect 2 'has no kernel with a device time' "$weir" export -f dataset plain.weir
expect 0 'No launch of a kernel was read' "$weir" hints plain.weir
expect 0 '^$' "$weir" html plain.weir -o page.html

# A file of somebody else's is not taken for an old trace.
if "$weir" help record >/dev/null 2>&1 && [ -e "$(dirname "$weir")/../lib/weir/libweir.so" ]; then
	expect 3 'text is there and is no trace. Remove it' "$weir" record -q -o text -- true
	expect 0 '^hello$' cat text
	expect 0 'no CUDA call was seen' "$weir" record -q -o empty -- true
	expect 0 'no CUDA call was seen' "$weir" record -q -o empty -- true
fi
finish
