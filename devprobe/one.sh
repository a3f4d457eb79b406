# one.sh NAME COMMAND
name=$1; shift
WEIR_TEST_DRIVER=real timeout 60 sh -c "$*" >"$OUT0/$name.log" 2>&1
rc=$?
echo "$rc $name"
[ $rc = 0 ] || [ $rc = 77 ] || { echo "== $name"; tail -n 8 "$OUT0/$name.log"; } >>"$OUT0/failed.txt"
