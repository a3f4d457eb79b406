#!/bin/sh
# The kernels that one thread of a recording launched, in order: launches.sh WEIR TRACE.  CSV of
# kernel and host_ns, which is CLOCK_MONOTONIC, the clock of the side tables.
set -eu
# The clock's value at the beginning: bytes 104 to 111 of the header (docs/reference/trace-format.md).
start=$(od -An -t u8 -j 104 -N 8 "$2" | tr -d ' ')
echo kernel,host_ns
"$1" export -f ndjson "$2" | python3 -c '
import json, sys
found = []
for line in sys.stdin:
    c = json.loads(line)
    kernel = (c.get("args") or {}).get("kernel")
    if c.get("api") == "driver" and c.get("class") == "launch" and kernel and not c.get("captured"):
        found.append((c["begin_ns"] + int(sys.argv[1]), kernel))
for at, kernel in sorted(found):
    quoted = kernel.replace("\"", "\"\"")
    print(f"\"{quoted}\",{at}")' "$start"
