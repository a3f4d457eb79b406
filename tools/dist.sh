# Builds the portable tree: dist.sh [MACHINE [TO]], for x86_64 (the default) or aarch64.  It becomes
# TO/weir-VERSION-linux-MACHINE.tar.zst (TO: dist), the same bytes from the same commit wherever they are built.
# build-dist-MACHINE has the sysroot, what was built, and the tree itself.
set -eu
machine=${1:-x86_64} to=${2:-dist}
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(weir VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=weir-$version-linux-$machine
work=build-dist-$machine
tree=$work/$name
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH

sh tools/deps.sh "dist-$machine"
sh tools/dist/sysroot.sh "$work/sysroot" "$machine"
[ -f "$work/build.ninja" ] || cmake -G Ninja -B "$work" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_LIBDIR=lib \
	-DWEIR_PORTABLE=ON -DWEIR_TESTS=OFF -DMACHINE="$machine" -DSYSROOT="$PWD/$work/sysroot" \
	-DCMAKE_TOOLCHAIN_FILE="$PWD/tools/dist/toolchain.cmake" >"$work/configure.log" || {
	cat "$work/configure.log" >&2
	exit 1
}
cmake --build "$work" ${JOBS:+-j "$JOBS"}

rm -rf "$tree"
cmake --install "$work" --strip --prefix "$PWD/$tree" >/dev/null
licences=$tree/share/doc/weir/licences
mkdir -p "$licences"
cp LICENSE "$licences/weir"
python3 tools/dist/spdx.py "$work" "$tree" "$work/$name.spdx.json" >"$work/linked"
while read -r package copyright; do
	cp "$copyright" "$licences/$package"
done <"$work/linked"
cp "$work/$name.spdx.json" "$tree/share/doc/weir/weir.spdx.json"
mkdir -p "$to"
cp "$work/$name.spdx.json" "$to"

# For pip.
cp tools/dist/pyproject.toml "$tree"
cp tools/dist/weir_wheel.py "$tree/share/weir"

tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rwX \
	-cf - "$name" | zstd -q -f -19 -o "$to/$name.tar.zst"
ls -l "$to/$name.tar.zst"
