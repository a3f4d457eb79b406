# Builds for arm64 and runs unit tests under qemu-user: arm64.sh [few].  The slow ones are left out, and those of
# tests/arm64.tbl, with the reasons; with `few`, for CI, all but those of what stands nearest to the processor.  Exit
# status 3: there is no compiler, no qemu or no root here.
set -eu
tests='[^.]*' targets=tests/unit/all
if [ "${1-}" = few ]; then
	tests='base|drain|flight|libc|lock|share|slots'
	targets=$(echo "test_$tests" | sed 's/|/ test_/g')
fi
cd "$(dirname "$0")/.."
build=build-arm64

skip() {
	echo "arm64: skipped: $*"
	exit 3
}
sh tools/deps.sh arm64 || true
command -v aarch64-linux-gnu-gcc >/dev/null || skip "there is no cross compiler (Debian: gcc-aarch64-linux-gnu)"
qemu=$(command -v qemu-aarch64-static) || skip "there is no qemu-user (Debian: qemu-user-static)"

# A program of arm64 is started by qemu, whoever starts it.
formats=/proc/sys/fs/binfmt_misc
[ -e $formats/register ] || mount -t binfmt_misc none $formats 2>/dev/null || skip "binfmt_misc can't be mounted"
grep -qs '^enabled' $formats/qemu-aarch64 || {
	magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
	mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
	echo ":qemu-aarch64:M::$magic:$mask:$qemu:F" >$formats/register || skip "qemu can't be registered: only root may"
}
sh tools/dist/sysroot.sh $build/sysroot aarch64 tests || skip "there are no packages to build with"
export QEMU_LD_PREFIX=$PWD/$build/sysroot

[ -f $build/build.ninja ] || cmake --preset arm64 >$build/configure.log || {
	cat $build/configure.log >&2
	exit 1
}
cmake --build $build ${JOBS:+-j "$JOBS"} --target hook audit weir $targets
sh tools/check-exports.sh . $build
sh tools/check-hook-symbols.sh . $build

left_out=$(awk -F' *[|] *' '!/^#/ && NF { printf "%s%s", sep, $1; sep = "|" }' tests/arm64.tbl)
awk -F' *[|] *' '!/^#/ && NF { print "arm64: skipped: " $1 " (" $2 ")" }' tests/arm64.tbl
ctest --test-dir $build -R "^unit\.($tests)\$" -L unit -LE 'gpu|slow' -E "^($left_out)\$" --output-on-failure \
	--no-tests=error --output-junit tests.xml -j "${JOBS:-$(nproc)}"
