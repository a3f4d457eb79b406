# Builds the image of the portable tree that `make dist` made: image.sh [MACHINE [TO]].  It needs no Docker and no root,
# and becomes TO/weir-VERSION-linux-MACHINE.oci.tar (TO: dist), the same bytes from the same tree and the same packages.
#
# In it are the tree (/weir), Debian's C library, what weir loads if it is there (libmicrohttpd, libdw), and
# busybox, with which an init container copies the tree.  build-dist-MACHINE/image/root has it all, for the Dockerfile.
set -eu
umask 022
machine=${1:-$(uname -m)} to=${2:-dist}
cd "$(dirname "$0")/../.."
case $machine in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) echo "image.sh: $machine is neither x86_64 nor aarch64" >&2; exit 2 ;;
esac
set -- dist/weir-*-linux-"$machine".tar.zst
[ -e "$1" ] && [ $# = 1 ] || { echo "image.sh: one portable tree has to be in dist/; run: make dist" >&2; exit 3; }
tree=$1 name=$(basename "$1" .tar.zst)
work=build-dist-$machine/image
mkdir -p "$work"
work=$(cd "$work" && pwd) here=$(pwd)/deploy/container

if ! [ "$work/made" -nt "$here/image.sh" ]; then
	rm -rf "$work"
	tools=$PWD/tools
	. "$tools/dist/apt.sh"
	mkdir -p "$work"
	begin_apt "$work" $arch bookworm
	apt install -d -y --no-install-recommends libc6 libmicrohttpd12 libdw1 busybox-static
	touch "$work/made"
fi

root=$work/root
rm -rf "$root"
mkdir -p "$root/etc" "$root/tmp" "$root/proc" "$root/sys" "$root/dev" "$root/var/lib/weir" "$root/root"
for package in "$work"/apt/archives/*.deb; do
	dpkg-deb -x "$package" "$root"
done
# Only the licences are read of what the packages say, and gconv is not used.
rm -rf "$root"/usr/share/lintian "$root"/usr/share/man "$root"/usr/share/locale "$root"/usr/lib/*/gconv
find "$root/usr/share/doc" -type f ! -name copyright -delete
find "$root/usr/share/doc" -type d -empty -delete
for applet in sh cat chmod cp env id ls mkdir mv rm sleep tar; do
	ln -s busybox "$root/bin/$applet"
done
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 12 >"$root/etc/debian_version" # by which NVIDIA's runtime knows the folders of libraries
zstd -dc "$tree" | tar -C "$root" -xf -
mv "$root/$name" "$root/weir"
chmod 1777 "$root/tmp" "$root/var/lib/weir"

mkdir -p "$to"
python3 "$here/oci.py" "$root" "$here/Dockerfile" "$arch" "$(stat -c %Y "$root/weir/bin/weir")" \
	"$(echo "$name" | sed 's/weir-\(.*\)-linux-.*/\1/')" "$to/$name.oci.tar"
ls -l "$to/$name.oci.tar"
