export OUT0=/tmp/hostile; mkdir -p $OUT0
grep -E 'daemon_grandchild|timeline_leave_kill' devprobe/hostile.list | tr '\t' '\n' | xargs -d '\n' -n 2 -P 1 sh devprobe/one.sh
cat $OUT0/failed.txt
export PATH=$PWD/build/bin:$PATH
s=$(date +%s); timeout 100 python3 tests/gpu/cupti_states.py llama resnet 2>&1 | tail -14 || timeout 60 python3 tests/gpu/cupti_states.py llama 2>&1 | tail; echo "states $(($(date +%s)-s)) s"
s=$(date +%s); timeout 420 python3 bench/mem/run.py --what time --rounds 2 --steps 40 --weir-program $PWD/build/bin/weir --out $OUT/mem.json 2>&1 | tail -30; echo "mem $(($(date +%s)-s)) s"
