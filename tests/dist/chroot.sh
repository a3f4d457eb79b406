# The programs in dist/ work in a minimal Debian: chroot.sh SOURCE BUILD SUITE.  $WEIR_CHROOTS
# (/var/cache/weir) keeps the Debians.  Each is the lower layer of a root that is gone when this
# ends; tests/dist/inside.sh runs there.
set -eu
source=$1 build=$2 suite=$3
tools=$source/tools
cannot() {
	echo "no Debian $suite can be made here: $*"
	exit 77
}
. "$tools/debian.sh"
base=${WEIR_CHROOTS:-/var/cache/weir}/$suite
# The packages in it: a Python that makes environments, and what unpacks the tree.
packages=python3-venv,zstd

if [ "${4-}" != inside ]; then
	[ -n "$(ls "$source"/dist/weir-*-linux-"$(uname -m)".tar.zst 2>/dev/null)" ] || { echo "no portable tree is here; run: make dist"; exit 77; }
	debian_needs flock
	mkdir -p "$base/layers"
	exec 9>"$base/lock"
	flock 9
	if [ "$(cat "$base/root/packages" 2>/dev/null)" != $packages ]; then
		debian_make "$base/new" "$suite" $packages "$base/cache" >"$base/log" 2>&1 || cannot "debootstrap failed: $(tail -1 "$base/log")"
		echo $packages >"$base/new/packages"
		rm -rf --one-file-system "$base/root"
		mv "$base/new" "$base/root"
	fi
	exec 9>&-
	debian_apart sh "$0" "$source" "$build" "$suite" inside
	exit
fi

mount -t tmpfs layers "$base/layers"
cd "$base/layers"
mkdir upper work root
mount -t overlay -o "lowerdir=$base/root,upperdir=upper,workdir=work" root root 2>/dev/null || cannot "no overlay can be mounted"
mkdir root/source root/build
mount -o bind,ro "$source" root/source
mount -o bind,ro "$build" root/build
debian_enter root
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 sh /source/tests/dist/inside.sh
