export OUT0=/tmp/hostile; mkdir -p $OUT0
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH-}
s=$(date +%s)
tr '\t' '\n' < devprobe/hostile.list | xargs -d '\n' -n 2 -P 10 timeout 70 sh devprobe/one.sh > $OUT/hostile.txt 2>&1
echo "hostile: $(($(date +%s)-s)) s"; cut -d' ' -f1 $OUT/hostile.txt | sort | uniq -c; cp $OUT0/failed.txt $OUT/failed.txt; head -c 5000 $OUT/failed.txt
