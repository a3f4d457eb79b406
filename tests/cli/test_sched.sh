# The measurements of a scheduler (bench/sched) on the simulated driver, judged by sums: each
# request is accounted for, what was answered was launched, and what the programs say they launched
# is what reached the driver.  Never by time.
weir=$1 source=$2
. "$(dirname "$0")/expect.sh"
build=$(cd "$(dirname "$weir")/.." && pwd)
sim=$build/lib/weir/sim load=$build/bench/bench-load
if ! [ -e "$build/lib/weir/libweir.so" ] || ! [ -e "$load" ]; then exit 0; fi
command -v python3 >/dev/null || exit 0
run="python3 $source/bench/sched/run.py --load $load --start-limit 60"
export LD_LIBRARY_PATH="$sim"
cd "$scratch" || exit 1

cat >sums.py <<'END'
import glob, json, sys
data = json.load(open('out.json'))
runs = {json.dumps(r[k]): r[k] for r in data['runs'] for k in ('latency', 'best_effort') if k in r}.values()
calls = {'cuLaunchKernel': 0, 'cuMemcpyHtoDAsync': 0}
for name in glob.glob('calls.*'):
    for line in open(name):
        word, n = line.split()
        if word.replace('_v2', '') in calls:
            calls[word.replace('_v2', '')] += int(n)
said = [sum(r[k] for r in list(runs) + data['calibration']) for k in ('launches', 'copies')]
latency = [r for r in runs if r['role'] == 'latency']
print('accounted', sum(r['answered'] + r['unanswered'] for r in latency), 'of', sum(r['requests'] for r in latency))
# Three launches of each kind of work to warm up, ten a request.
print('answered' if all(r['launches'] == 3 * len(r['work']) + 10 * r['answered'] for r in latency) else 'MISSING')
print('said', *said, 'reached', *calls.values())
print('agree' if said == list(calls.values()) else 'DIFFER')
END

# Four cells; in two rounds LC alone in two kinds, and LC beside BE four times.
expect 0 'poisson-copy +slices +p50' env WEIR_SIM=log=calls.%p $run --variants slices --rounds 2 --seconds .05 \
	--requests 20 --out out.json --cells closed-short,closed-waves,poisson-mix,poisson-copy
expect 0 '^accounted 240 of 240$' python3 sums.py
expect 0 '^answered$' python3 sums.py
expect 0 '^agree$' python3 sums.py
expect 0 '^\| poisson-mix \| slices \| 40 \| ' $run --report out.json
expect 0 '^\| closed-short \| [0-9]+ / [0-9]+ \| [0-9.]+ / [0-9.]+ \|$' $run --report out.json
expect 1 'out.json is there already' $run --out out.json
expect 0 '' python3 "$source/bench/sched/frontier.py" out.json out.svg
expect 0 'polygon|circle' cat out.svg
expect 0 '' python3 -c 'import xml.dom.minidom as m; m.parse("out.svg")'

# The same on a device that both programs share, in slices and as under MPS, with kernels as long as they are asked to
# be: --slower 10 is for a device with a tenth of the speed.
shared=kernel=spin:1:1ns,gpu=$scratch/device,time=real,speed=.1,log=$scratch/calls.%p
echo "$shared" | tr , '\n' >slices.sim
echo "$shared,sharing=mps" | tr , '\n' >mps.sim
mv out.json before.json
rm -f calls.*
expect 0 'poisson-mix +half +p50' env WEIR_SIM=@slices.sim $run --variants slices --rounds 1 --seconds .3 --slower 10 \
	--requests 20 --out out.json --cells closed-short,poisson-mix --weir-program "$build/bin/weir" \
	--weir "weir:--isolated --share $scratch/share:--isolated --share $scratch/share" \
	--way 'half:env WEIR_SIM=@mps.sim:env WEIR_SIM=@mps.sim CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50'
expect 0 '^accounted 160 of 160$' python3 sums.py
expect 0 '^answered$' python3 sums.py
expect 0 '^agree$' python3 sums.py
mv before.json out.json

# A count that is wrong shows.
sed -i 's/"launches": /&1/' out.json
expect 0 'DIFFER' python3 sums.py

# Latency counts from when a request was due: each lasts 200 ms, and 20 are due within 100 ms.  Half of them are over
# a second late, however slow this machine is; those that were never begun are counted.
expect 0 '"requests": 20, "answered": [0-7], "unanswered": (1[3-9]|20), "p50_us": [0-9]{7,}\.' \
	env WEIR_SIM=delay=cuStreamSynchronize:200ms "$load" latency --work kernel,amount=1 --arrival periodic \
	--rate 200 --requests 20
# One that waits for answers is never late by that.
expect 0 '"requests": 3, "answered": 3, "unanswered": 0' env WEIR_SIM=delay=cuStreamSynchronize:200ms "$load" latency \
	--work kernel,amount=1 --requests 3 --pause 1

# Rounds are added to a file that is there; a command stands before each program.
more="$run --rounds 1 --requests 5 --seconds .05 --cells periodic-short --out more.json"
expect 0 'round 1 periodic-short +twice +p50' $more --variants '' --way 'twice:env A=1:env A=1'
expect 0 'round 2 periodic-short +slices +p50' $more --variants slices --append
expect 0 '^\| periodic-short \| alone \| 10 \| ' $run --report more.json

# Failures, missing parts and hangs are said, and nothing is left of them.
expect 1 'cuLaunchKernel failed with CUDA error 700' env WEIR_SIM=fault=cuLaunchKernel:60:700 $run --rounds 1 \
	--requests 50 --seconds .05 --cells closed-short --variants slices --out bad.json
expect 1 'FAILED: no-such-program: No such file' $run --rounds 1 --requests 5 --seconds .05 --out none.json \
	--cells closed-short --variants '' --way 'none:no-such-program:no-such-program'
cat >hang <<'END'
echo $$ >>pids
exec sleep 1000
END
expect 1 'was not ready after 1 s and was killed' $run --start-limit 1 --rounds 1 --requests 5 --seconds .05 \
	--out hang.json --cells closed-short --variants '' --way 'hang:sh hang:sh hang'
expect 0 '^[0-9]+$' cat pids
for pid in $(cat pids); do
	expect 1 '' kill -0 "$pid"
done

# MPS: a daemon for those that want it, with directories of its own, and nobody else told of it.  A stand-in for the
# daemon notes what it is asked; one for the networks says what MPS is told by its environment.
mkdir bin
cat >bin/nvidia-cuda-mps-control <<END
#!/bin/sh
echo "\$* in \$CUDA_MPS_PIPE_DIRECTORY" >>"$scratch/control"
pid=\$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid
if [ "\$1" = -d ]; then
	sleep 1000 &
	echo \$! >"\$pid"
elif [ "\$(cat)" = quit ]; then
	kill "\$(cat "\$pid")" && rm "\$pid"
fi
END
chmod +x bin/nvidia-cuda-mps-control
cat >network.py <<END
import os, sys
sys.path.insert(0, '$source/bench/sched')
import program
args = program.options(['infer', 'train', 'calibrate', 'decode'])
mps = {k[9:].lower(): v for k, v in os.environ.items() if k.startswith('CUDA_MPS')}
if args.role == 'train':
	program.work(args, lambda: None, mps=mps)
elif args.role == 'calibrate':
	print('{"request_us": 5000}')
else:
	program.serve(args, lambda: None, mps=mps)
END
cat >told.py <<'END'
import json, os
for run in json.load(open('mps.json'))['runs']:
    for key in ('latency', 'best_effort'):
        if key in run:
            mps = run[key]['mps']
            pipe = 'no daemon' if mps.pop('pipe_directory').endswith('/no-mps') else 'daemon'
            mps.pop('log_directory', None)
            print(run['cell'], run['variant'], key, pipe, mps, run[key].get('requests', 0) == run[key].get('answered', 0) + run[key].get('unanswered', 0))
control = [line.split() for line in open('control')]
print([words[0] for words in control], len({words[-1] for words in control}), os.path.exists(control[0][-1]))
END
models() {
	PATH=$scratch/bin:$PATH python3 "$source/bench/sched/run.py" --load "$load" --model-seconds .2 \
		--program "resnet=python3 network.py" --program "llama=python3 network.py" "$@"
}
expect 0 'round 1 llama +mps +p50' models --cells resnet,llama --rounds 1 --out mps.json \
	--variants mps,slices,mps+priority+cap=70
expect 0 "^resnet slices best_effort no daemon \{\} True$" python3 told.py
expect 0 "^resnet mps latency daemon \{\} True$" python3 told.py
expect 0 "^llama mps\+priority\+cap=70 latency daemon \{\} True$" python3 told.py
expect 0 "^llama mps\+priority\+cap=70 best_effort daemon \{.*priority': '1'.*percentage': '70'\} True$" python3 told.py
expect 0 "^\['-d', 'in', '-d', 'in'\] 2 False$" python3 told.py

# The programs in Python count latency as the one in C does.
expect 0 '"requests": 20, "answered": [0-7], "unanswered": (1[3-9]|20), "p50_us": [0-9]{7,}\.' \
	env PYTHONPATH="$source/bench/sched" python3 -c 'import program, time
program.serve(program.options(["infer"]), lambda: time.sleep(.2))' infer --rate 200 --requests 20

# The most programs: their number is doubled and halved, up to a limit.
expect 0 '^\| mps \| [0-3] \| ' models --capacity --most 3 --variants mps --out most.json
expect 0 '"programs": 1' cat most.json

expect 2 'rate is missing' "$load" latency --work kernel --arrival poisson
expect 2 'unknown word' "$load" latency --work kernel,foo=1
expect 1 'nothing is no cell' $run --cells nothing --out x.json
expect 1 'behind mps' $run --variants mps+more --out x.json
finish
