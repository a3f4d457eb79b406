# Commands, options and what is said when they are wrong.
weir=$1
. "$(dirname "$0")/expect.sh"

expect 2 'usage: weir COMMAND' "$weir"
expect 0 'explain a command' "$weir" help
expect 0 'usage: weir help \[OPTION\.\.\.\] \[COMMAND' "$weir" help help

# The help of a command has the questions that this command answers, and no others.
expect 0 '^what should I change first' "$weir" help hints
expect 0 '^.weir help questions. lists [0-9]+ more' "$weir" help report
expect 1 '' sh -c "$weir help predict | grep refused"

expect 0 'usage: weir version' "$weir" version --help
expect 0 'usage: weir version' "$weir" version -h
expect 0 '^weir [0-9]+\.[0-9]+\.[0-9]+$' "$weir" version
expect 0 '^weir [0-9]' "$weir" --version
expect 0 'usage: weir COMMAND' "$weir" --help

expect 2 "no command 'versoin'. Did you mean 'version'" "$weir" versoin
expect 2 "no command 'zzzzzz', nor a question about it. .weir help. lists the commands" "$weir" zzzzzz
expect 2 "no command 'zzzzzz'" "$weir" help zzzzzz
expect 2 "weir version: there is no option --hepl. Did you mean --help" "$weir" version --hepl
expect 2 "weir version: there is no option -z" "$weir" version -z
expect 2 "'x' is one argument too many. Usage: weir version" "$weir" version x
expect 2 "no command 'help b'" "$weir" help help b
# Several words are one question, the same with quotes, and what fits best comes first.
first() {
	"$weir" help "$@" | sed -n 2p
}
expect 0 'only launch_gaps' first launch overhead
expect 0 'only launch_gaps' first 'launch overhead'
expect 0 'only gpu_trace' first gpu trace
expect 0 'weir memory' first memory peak
expect 0 'weir memory' first peak memory
expect 0 'weir report --range' first time range
expect 0 'only kernels' first kernel sum
expect 0 'only idle_gaps' first idle
expect 0 'record --stacks' first callstack
expect 0 'only waits' first waiting
expect 0 'only launch_gaps' first launching
expect 0 'only queue' first enough work

# Sections under another tool's names.
trace=$(dirname "$0")/../golden/kineto/transformer-train.json.gz
meant() { # WORD SECTION
	expect 2 "there is no section $1. Did you mean $2\\? There are " "$weir" report --only "$1" "$trace"
}
meant gaps idle_gaps
meant kernels_at kernels_at_once
meant idle idle_gaps
meant memcpy memops
meant cuda_api_sum calls
meant cuda_api_trace api_trace
meant utilization breakdown
meant nvtx_sum operators
meant cuda_gpu_kern_sum kernels
expect 2 'there is no section zzzzzz: there are trace' "$weir" report --only zzzzzz "$trace"
expect 2 "no command 'profile'. Try .weir record" "$weir" profile
expect 2 "no command 'stats'. Try .weir report [^ ]*transformer-train" "$weir" stats "$trace"
expect 2 "no command 'stats'. Try .weir stat -- " "$weir" stats

# Success is not claimed for output that was lost.
if [ -e /dev/full ]; then
	expect 3 'standard output could not be written' sh -c "$weir help >/dev/full"
fi

has() {
	"$weir" help "$1" >/dev/null 2>&1
}
if has record; then
	expect 2 'PROGRAM is missing. Usage: weir record .* -- PROGRAM' "$weir" record
	expect 2 '--output needs a value: --output=FILE' "$weir" record -o
	expect 2 '--quiet takes no value' "$weir" record --quiet=yes true
	expect 2 "there is no option --outptu. Did you mean --output" "$weir" record --outptu x
fi
if has report; then
	expect 2 'FILE is missing, and there is no weir.weir here.* make one with .weir record' "$weir" report --json
	expect 2 'absent\.weir' "$weir" report "$scratch/absent.weir"
	expect 2 "absent\.weir" "$weir" report "$scratch/absent.weir" --json
fi
finish
