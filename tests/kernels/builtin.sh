#!/bin/sh
# src/kernels/builtin.ptx is what its sources give: builtin.sh PROGRAM FILE [--update].  Another NVRTC than the one that
# made the file writes other PTX, and then the comparison is skipped.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" >"$work/ptx" || { status=$?; cat "$work/ptx"; exit $status; }
if [ "${3-}" = --update ]; then
	cp "$work/ptx" "$2"
	exit
fi
version() { grep -m1 'Cuda compilation tools' "$1"; }
[ "$(version "$work/ptx")" = "$(version "$2")" ] || { echo "NVRTC is another one than that of $2"; exit 77; }
cmp "$work/ptx" "$2" || { echo "sh $0 $1 $2 --update"; exit 1; }
