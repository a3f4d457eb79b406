# Runs a program with each of its system calls going wrong in turn:
#
#     sweep.sh BUILD WHERE [STRIDE]
#
# WHERE is hook, record or kill, as faults.tbl has it, or joined: hook, under `weir record`, which drains
# what the hook writes; or killed: the process whose hook is at it is killed, and the trace holds what had
# returned; or replaced: the same where it finds an older recording, which is there until the new one is.  A STRIDE above 1 takes one call in so many.
# In every run the program's output and end are what they are without Weir; the trace can be read, and
# what it holds and what it says is lost are together what the program did; no other file is left.
# A recorder that was killed leaves what the next one to the same file can do with.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) || exit 1
where=$2 stride=${3:-1}
inject=$build/tests/faults/inject program=$build/tests/faults/program
weir=$build/bin/weir hook=$build/lib/weir/libweir.so sim=$build/lib/weir/sim
[ -e "$hook" ] && [ -x "$weir" ] || {
	echo "libweir.so is not built"
	exit 77
}
[ -x "$inject" ] || {
	echo "inject.c changes registers of x86-64 alone"
	exit 77
}
work=$(mktemp -d "${TMPDIR:-/tmp}/faults.$where.XXXXXX") || exit 1
mkdir "$work/run"
cd "$work/run" || exit 1
bad=0 runs=0 hit=0

complain() {
	bad=$((bad + 1))
	echo "$what: $*"
}

# Calls and ranges of a trace, kept or said to be lost; nothing when it can't be read.
account() {
	"$weir" report --json --top=0 t.weir 2>../report.err >../report.json || return 1
	awk '/^\t\t"(calls|lost)": / { split($0, part, /[:,]/); calls += part[2] }
		/"(missing|surplus)": [1-9]/ { wrong = 1 }
		/^\t\t"lost": null/ { unknown = 1 }
		unknown && /^\t\t"missing": / { wrong = 1 } # whose calls were counted
		/"kind": "[a-z ]*", "count": / && /"name"/ { sub(/.*"kind": "[a-z ]*", "count": /, ""); ranges += $0 }
		/ranges were lost/ { sub(/^[^0-9]*/, ""); ranges += $0 }
		END { print calls + 0, ranges + 0 (wrong ? " unbalanced" : "") }' ../report.json
}

# The program with one fault: go CALL N FAULT.  Its output is in ../out, its end in $status.
go() {
	case $where in
	hook | killed | replaced)
		set -- "$1" "$2" "$3" env LD_LIBRARY_PATH="$sim" LD_PRELOAD="$hook" \
			NVTX_INJECTION64_PATH="$hook" WEIR="record:$work/run/t.weir" "$program"
		;;
	*) set -- "$1" "$2" "$3" "$weir" record --sim --quiet -o t.weir -- "$program" 30000 ;;
	esac
	side=first
	case $where in hook | joined | killed | replaced) side=hook ;; esac
	timeout 60 "$inject" ../log "$side" "$@" >../out 2>../err
	status=$?
}

unharmed() {
	cmp -s ../out ../expected.out || complain "the program said: $(diff ../expected.out ../out | head -n 4 | tr '\n' ' ')"
	[ "$where" = kill ] || [ $status = 5 ] || complain "the program ended with $status; $(head -c 300 ../err)"
	[ "$where" = hook ] || grep -q '^ended 5$' ../log || complain "the program did not end by itself"
	[ "$where" != hook ] || [ ! -s ../err ] || complain "something was printed: $(head -c 300 ../err)"
}

only_the_trace() {
	for file in * .[!.]*; do
		[ "$file" = t.weir ] || [ ! -e "$file" ] || complain "$file is left"
	done
}

# A fault that lasts before the trace is mapped leaves the hook nowhere to say anything.
is_never_reached() {
	case $where.$what in *EOPNOTSUPP+) return 1 ;; hook.*+ | joined.*+) ;; *) return 1 ;; esac
	awk '/^fault/ { exit } { maps += last == "call mmap"; last = $0 } END { exit maps > 0 }' ../log
}

complete() {
	if is_never_reached; then
		[ ! -e t.weir ] || [ "$(account)" = "0 0" ] || complain "a part is here: $(account)"
		return
	fi
	now=$(account) || {
		complain "weir report: $(head -c 300 ../report.err)"
		return
	}
	[ "$now" != "$expected" ] || return
	complain "calls and ranges here and lost are $now, not $expected"
}

check_killed() {
	[ -e t.weir ] || return
	now=$(account) || complain "weir report: $(head -c 300 ../report.err)"
	case $now in *unbalanced) complain "calls that returned are missing: $now" ;; esac
}

check() {
	if [ "$where" != hook ] && [ ! -s ../out ] && ! grep -q '^ended' ../log; then
		[ $status != 0 ] || complain "nothing was run, and nobody said so"
		return
	fi
	unharmed
	complete
}

# An older recording, which a recorder has to do something with.
before() {
	case $where in record | kill | replaced) cp ../before.weir t.weir ;; esac
}

one() {
	what="$*"
	rm -f t.weir* .[!.]*
	before
	go "$@"
	runs=$((runs + 1))
	grep -q '^fault$' ../log || return
	hit=$((hit + 1))
	case $where in killed | replaced) check_killed ;; *) check ;; esac
	case $where in kill) after_kill ;; replaced) after_replaced ;; esac
	only_the_trace
}

# The next recorder of the same file replaces what is there, also if the program comes to no CUDA.
after_kill() {
	"$weir" record --sim --quiet -o t.weir -- true 2>../err || complain "then weir record: $(cat ../err)"
	[ "$(account)" = "0 0" ] || complain "an older recording is still there: $(account)"
	"$weir" record --sim --quiet -o t.weir -- "$program" >../out 2>../err
	[ "$(account)" = "$expected" ] || complain "then weir record: $(account) $(cat ../err)"
}

# Whatever was left beside it is gone with the next.
after_replaced() {
	[ -e t.weir ] || complain "the recording of before is gone"
	go none 0 none
	complete
}

# Without a fault: what is expected of all, and which calls there are.
what="no fault" all=$where
case $where in killed | replaced) where=hook ;; esac # until somebody is
go none 0 none
[ $status != 77 ] || {
	tail -n 1 ../out
	rm -rf "$work"
	exit 77
}
LD_LIBRARY_PATH=$sim "$program" >../expected.out
expected=$(account)
mv t.weir ../before.weir
before
go none 0 none
check
only_the_trace
cp ../log ../calls

# A fault that harms is noticed: an expectation that is wrong by one call.
control() {
	saved=$expected expected="$((${expected%% *} + 1)) ${expected#* }" what=control
	complete >../control
	[ -s ../control ] || {
		echo "a call too few is not noticed"
		exit 1
	}
	bad=0 expected=$saved
	"$inject" ../log first write 1 EIO env LD_LIBRARY_PATH="$sim" "$program" >../out 2>../err
	status=$?
	touch left
	unharmed >../control
	only_the_trace >>../control
	rm left
	grep -q "the program said" ../control && grep -q "left is left" ../control || {
		echo "a program that is harmed is not noticed: $(cat ../control)"
		exit 1
	}
	bad=0
}
[ $bad = 0 ] && control

where=$all
case $where in joined) rows=hook ;; killed | replaced) rows=kill ;; *) rows=$where ;; esac
grep "^$rows " "$here/faults.tbl" | tr -d '|' >../table
while read -r _ call faults; do
	count=$(grep -c "^call $call\$" ../calls)
	for fault in $faults; do
		n=1
		while [ $n -le "$count" ]; do
			one "$call" $n "$fault"
			n=$((n + stride))
		done
	done
done <../table
echo "$where: $runs runs, $hit with a fault, $bad complaints"
[ $hit -gt 0 ] || bad=1
[ $bad = 0 ] && rm -rf "$work"
[ $bad = 0 ]
