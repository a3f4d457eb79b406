#!/bin/sh
# All that is said of sharing with defaults, in one call of at most eight minutes on a GPU:
#
#	sh bench/sched/h200.sh BUILD OUT.json
#
# ResNet-50 and Llama beside training (where PyTorch is) and the cells without PyTorch, with `weir run` as it is installed;
# what a best-effort program keeps of its rate when it is alone; how soon a latency program is served that
# comes when 700 kernels are queued.  OUT.json has all runs, and `verdict` what each has to be.
#
# QUICK=SECONDS, those of ResNet-50 (140 for one round, 190 for two), and 100 for the rest: without `micro`, and ResNet-50 also with a constant budget, and with holds, to tell what
# limits it.  `status` in OUT.json has what `weir sched status` said every two seconds beside models.  OUT.json is written
# after each part, so a call that is cut short leaves what it had measured.
#
# On the simulated driver: WEIR_SIM and LD_LIBRARY_PATH as in README.md, SLOWER=10, CELLS=closed-short, for example.
set -u
[ $# = 2 ] || { echo "usage: h200.sh BUILD OUT.json" >&2; exit 2; }
build=$(cd "$1" && pwd) out=$2 here=$(cd "$(dirname "$0")" && pwd)
weir=$build/bin/weir load=$build/bench/bench-load slower=${SLOWER-1}
work=$(mktemp -d) || exit 3
share=$work/share
quick=${QUICK-}
for name in share share-budget share-hold share-open; do mkdir -m 700 "$work/$name"; done
trap 'rm -rf "$work"' EXIT
begun=$(date +%s)

# Writes OUT.json of what there is by now: whoever ends this early has it.  conclude [last]: also prints the verdict.
us=$((31 * slower)) small=$((3 * slower)) seconds=2
conclude() {
python3 - "$work" "$out" "$here" "$(($(date +%s) - begun))" "$us" "$small" "$@" <<'END'
import glob, json, os, statistics, sys
work, out, here, seconds, us, small = sys.argv[1:7]
sys.path.insert(0, here)
import table
read = {os.path.basename(n)[:-5]: open(n).read() for n in glob.glob(work + '/*.json')}
data = {name: json.loads(text) for name, text in read.items() if text.strip().startswith('{')}
least = {'resnet': (1.2, .90), 'llama': (1.25, .75)}
# p99 of docs/explanation/sharing-results.md, where that is above 1.2
known = {}
verdict = []
for name in ('resnet', 'llama', 'micro'):
    for cell in table.first_seen(r['cell'] for r in data.get(name, {'runs': []})['runs']):
        found = table.ratios(data[name], cell, 'weir')
        if not found['p99'] or not found['share']:
            verdict.append({'what': cell, 'right': False, 'errors': found['errors']})
            continue
        p99, share = statistics.median(found['p99']), statistics.median(found['share'])
        most, fewest = least.get(cell, (known.get(cell, 1.2), 0))
        verdict.append({'what': cell, 'p99': round(p99, 3), 'at_most': most, 'share': round(share, 3), 'at_least': fewest,
                        'rounds': len(found['p99']), 'right': p99 <= most and share >= fewest})
for kind in (us, small):
    pairs = [(data.get('weir-%s-%d' % (kind, i)), data.get('plain-%s-%d' % (kind, i))) for i in (1, 2, 3)]
    kept = [a['rate_s'] / b['rate_s'] for a, b in pairs if a and b and b['rate_s']]
    free = [b['rate_s'] / a['rate_s'] for a, b in
            ((data.get('plain-%s-%d' % (kind, i)), data.get('open-%s-%d' % (kind, i))) for i in (1, 2, 3)) if a and b]
    if kept:
        verdict.append({'what': 'best effort alone, kernels of %s us' % kind, 'share': round(statistics.median(kept), 4),
                        'share_with_gates_open': round(statistics.median(free), 4) if free else None,
                        'at_least': .98, 'right': statistics.median(kept) >= .98})
queued = data.get('queued', {})
if queued.get('late_p50_us'):
    times = queued['early_p50_us'] / queued['late_p50_us']
    verdict.append({'what': 'median behind 700 queued kernels', 'times_usual': round(times, 3), 'at_most': 1.3,
                    'right': times <= 1.3})
for line in verdict if sys.argv[7:] else ():
    print('%-5s %s' % ('right' if line['right'] else 'WRONG', json.dumps(line)))
status = {os.path.basename(n)[:-7]: [json.loads(t) for t in open(n) if 'best-effort' in t and '"latency"' in t]
          for n in glob.glob(work + '/*.status')}
json.dump({'verdict': verdict, 'seconds': int(seconds), 'status': status, 'runs': data}, open(out, 'w'), indent=1)
sys.exit(not verdict or any(not v['right'] for v in verdict))
END
}

# cells NAME CELLS SECONDS ROUNDS BUDGET [OPTION...]: a file of run.py
cells() {
	[ -n "$2" ] || return
	more=${6-}
	watch "$1"
	python3 "$here/run.py" --out "$work/$1.json" --cells "$2" --variants= --load "$load" --weir-program "$weir" \
		--weir "weir:--share=$share:--share=$share" --slower "$slower" --rounds "$4" --budget "$5" $3 $more || echo "$1: some runs failed"
	kill $watcher 2>/dev/null
	wait $watcher 2>/dev/null
	conclude
}

# Logs the settings and their reasons while both programs run.
watch() {
	while sleep 2; do
		"$weir" sched --share "$share" --json status 2>/dev/null | tr -d '\n' && echo
	done >"$work/$1.status" &
	watcher=$!
}

with_share() {
	echo "--weir=$1:--share=$work/share-$1:--share=$work/share-$1"
}

# Prints the last line, which is JSON, of a load; what comes before the load is in $before.
rate() {
	name=$1
	shift
	"$@" 2>>"$work/log" | tail -n 1 >"$work/$name.json"
}

"$weir" sched --share="$work/share-budget" policy fit budget=600us >>"$work/log" 2>&1
"$weir" sched --share="$work/share-hold" policy fit hold=200us >>"$work/log" 2>&1
"$weir" sched --share="$work/share-open" policy fit >>"$work/log" 2>&1
"$weir" sched --share="$work/share-open" open >>"$work/log" 2>&1
models= micro= all=resnet,llama,micro
[ -z "$quick" ] || all=resnet,llama
for cell in $(echo "${CELLS-$all}" | tr , ' '); do
	case $cell in
	resnet | llama) python3 -c 'import torch, torchvision' 2>/dev/null && models="$models $cell" || echo "$cell: PyTorch is missing" ;;
	*) micro=${micro:+$micro,}$cell ;;
	esac
done
for cell in $models; do
	case $cell${quick:+-quick} in
	resnet-quick) cells resnet resnet "--model-seconds 8" 2 "$quick" "$(with_share budget) $(with_share hold)" ;;
	llama-quick) cells llama llama "--model-seconds 14" 1 80 ;;
	resnet) cells resnet resnet "--model-seconds 9" 3 215 ;;
	llama) cells llama llama "--model-seconds 18" 1 115 ;;
	esac
done
cells micro "$micro" "--seconds $((2 * slower))" 1 $((90 * slower))

# WORK with the amount that lasts so long, found once on the idle device.
calibrated() {
	amount=$("$load" calibrate --work "$1" | tail -n 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["work"][0]["amount"])')
	echo "$1,amount=$amount"
}

# Alone, in turns: kernels of 31 us, and small ones that the host has to hurry for.
work_us=$(calibrated "kernel,us=$us,blocks=264") work_small=$(calibrated "kernel,us=$small,blocks=264")
work_request=$(calibrated "kernel,us=$((1000 * slower)),blocks=64") work_queued=$(calibrated "kernel,us=$((5000 * slower)),blocks=1056")
turns='1 2 3'
[ -z "$quick" ] || turns=1
for turn in $turns; do
	for kind in $us $small; do
		kernels=$work_us
		[ "$kind" = "$us" ] || kernels=$work_small
		set -- "$load" best-effort --batch 64 --seconds $seconds --work "$kernels"
		rate "plain-$kind-$turn" "$@"
		rate "weir-$kind-$turn" "$weir" run -q --share "$share" -- "$@"
		rate "open-$kind-$turn" "$weir" run -q --share "$work/share-open" -- "$@"
	done
	conclude
done

# 700 kernels of 5 ms are queued, then a latency program comes: its median from a tenth of a second to a second after it
# came, against that of its last two seconds beside the same kernels.
"$weir" run -q --share "$share" -- "$load" best-effort --batch 700 --seconds $((12 * slower)) \
	--work "$work_queued" >"$work/queue" 2>&1 &
queue=$!
sleep $((2 * slower))
rate queued "$weir" run -q --share "$share" --class latency -- "$load" latency --arrival closed --pause $((9000 * slower)) \
	--batch 3 --work "$work_request" --requests 400 --seconds $((8 * slower))
kill $queue 2>/dev/null
wait $queue 2>/dev/null

conclude last
