# Makes a folder to compile against: sysroot.sh FOLDER MACHINE [tests].  It has the C library of Debian 11, so that what is
# linked to it runs with any newer one, and of Debian 12 the libraries that are linked into Weir, as archives, and the
# headers of those that are loaded.  For tests it has Debian 12's C library as well, and is a root: with all that a program
# of MACHINE loads, a shell, its tools and Python, so that qemu-user runs there what is built and its tests.  Needs apt, not
# root: the packages are unpacked, nothing is installed.
set -eu
folder=$1 machine=$2
old=bullseye new=bookworm
oldest='libc6 libc6-dev'
linked='zlib1g-dev libzstd-dev liblz4-dev libsqlite3-dev libjansson-dev libncurses-dev libtinfo6 libnghttp2-dev'
loaded='linux-libc-dev libmicrohttpd-dev libdw-dev libelf-dev'
run=
if [ "${3-}" = tests ]; then
	old=$new
	loaded="$loaded libcmocka-dev"
	run='libcmocka0 libdw1 libmicrohttpd12 libnghttp2-14 libstdc++6 zlib1g bash coreutils dash diffutils findutils grep gzip
		hostname libc-bin mawk ncurses-base procps python3 sed sqlite3 util-linux zstd'
fi
case $machine in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) echo "sysroot.sh: $machine is neither x86_64 nor aarch64" >&2; exit 2 ;;
esac
[ ! "$folder/made" -nt "$0" ] || exit 0 # by this list of packages

rm -rf "$folder"
mkdir -p "$folder/packages"
folder=$(cd "$folder" && pwd)
tools=$(cd "$(dirname "$0")/.." && pwd)
. "$tools/dist/apt.sh"
begin_apt "$folder" $arch $old $new
cd "$folder/packages"
apt download $(printf "%s/$old " $oldest) $(printf "%s/$new " $linked $loaded)
[ -z "$run" ] || { # and what these need
	apt install -y --download-only --no-install-recommends $run
	mv ../apt/archives/*.deb .
	mkdir -p ../etc ../proc ../dev ../tmp ../usr/bin
	ln -s mawk ../usr/bin/awk
	echo root:x:0:0::/tmp:/bin/sh >../etc/passwd
}
for package in *.deb; do
	dpkg-deb -x "$package" ..
done

# Links that begin at the root lead into this folder, not to the system's.
cd ..
find . -type l -lname '/*' | while read -r link; do
	ln -sfr ".$(readlink "$link")" "$link"
done
for package in $linked; do
	for archive in $(dpkg-deb -c packages/${package}_*.deb | grep -o '/lib[a-z0-9+]*\.a$'); do
		rm -f "usr/lib/$machine-linux-gnu$(echo "$archive" | sed 's/a$/so/')"
	done
done
for package in packages/*.deb; do
	dpkg-deb -W --showformat '${Package} ${Version} ${Architecture}\n' "$package"
done | sort >made
