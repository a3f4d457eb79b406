# Builds for arm64 and runs unit, golden, cli and hostile tests under qemu-user: arm64.sh [few].  The slow ones are left out,
# and those of tests/arm64.tbl, with the reasons; with `few`, for CI, all but the unit tests of what stands nearest to the
# processor.  The shell, its tools and Python are of arm64 too, in a root of their own, where the tree that `make dist` made
# for arm64 is tried as well, if it is there.  Exit status 3: there is no compiler, no qemu or no root here.
set -eu
tests='((unit|golden|cli|hostile)\.|dist\.elsewhere$)' targets=all
if [ "${1-}" = few ]; then
	tests='unit\.(base|drain|flight|libc|lock|share|slots)$'
	targets="hook audit weir $(echo "$tests" | sed 's/.*(/test_/; s/).*//; s/|/ test_/g')"
fi
cd "$(dirname "$0")/.."
build=build-arm64
tools=$PWD/tools
. tools/debian.sh

# ctest starts sh scripts in the root, where this folder is at its own place.
if [ "${1-}" = inside ]; then
	shift
	root=$PWD/$build/sysroot
	mount -t proc proc "$root/proc"
	mount -t tmpfs tmp "$root/tmp"
	(cd "$root" && mount_devices)
	mkdir -p "$root$PWD" $build/outside
	mount --bind "$PWD" "$root$PWD"
	cat >$build/outside/sh <<-END
		#!/bin/sh
		unset QEMU_LD_PREFIX
		exec chroot $root env -C "\$PWD" PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp sh "\$@"
	END
	chmod +x $build/outside/sh
	PATH=$PWD/$build/outside:$PATH
	export NO_OPENAT2=qemu
	exec ctest --test-dir $build --output-on-failure --no-tests=error --output-junit tests.xml "$@"
fi

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
debian_apart true || skip "root gets no namespaces here (in a container: it needs CAP_SYS_ADMIN)"
sh tools/dist/sysroot.sh $build/sysroot aarch64 tests || skip "there are no packages to build with"
export QEMU_LD_PREFIX=$PWD/$build/sysroot

[ -f $build/build.ninja ] || cmake --preset arm64 >$build/configure.log || {
	cat $build/configure.log >&2
	exit 1
}
cmake --build $build ${JOBS:+-j "$JOBS"} --target $targets
sh tools/check-exports.sh . $build
sh tools/check-hook-symbols.sh . $build

left_out=$(awk -F' *[|] *' '!/^#/ && NF { printf "%s%s", sep, $1; sep = "|" }' tests/arm64.tbl)
awk -F' *[|] *' '!/^#/ && NF { print "arm64: skipped: " $1 " (" $2 ")" }' tests/arm64.tbl
debian_apart sh "$0" inside -R "^$tests" -LE 'gpu|slow' -E "^($left_out)\$" -j "${JOBS:-$(nproc)}"
