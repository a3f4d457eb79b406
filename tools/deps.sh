# Installs the Debian packages that are missing for `deps.sh build`, `check`, `lint`, `fuzz`, `serve`, `arm64` or
# `dist-MACHINE`.  Does nothing when they are there; says what to install by hand where it cannot.
set -u

packages='cmake ninja-build gcc libc6-dev pkg-config libzstd-dev liblz4-dev zlib1g-dev libsqlite3-dev
	libjansson-dev libcmocka-dev libncurses-dev
	libmicrohttpd-dev libdw-dev libnghttp2-dev'
case ${1:-build} in
check) packages="$packages mandoc g++ musl-tools debootstrap lintian python3 python3-pyte python3-jsonschema chromium-headless-shell protobuf-compiler python3-grpcio"
	packages="$packages podman crun skopeo zstd slurm-wlm iproute2 python3-ipython" ;; # of containers
lint) packages="$packages clang-format-14 universal-ctags binutils" ;;
bench) packages="$packages wrk nghttp2-client nginx-light" ;;
fuzz) packages="$packages clang-14 libclang-rt-14-dev" ;;
check-dist) packages="$packages debootstrap zstd binutils python3 lintian" ;;
dist-x86_64) packages="$packages zstd binutils python3" ;;
arm64) packages="$packages gcc-aarch64-linux-gnu qemu-user-static" ;;
dist-aarch64) packages="$packages zstd binutils python3 gcc-aarch64-linux-gnu" ;;
packages) packages='debhelper rpm zstd python3' ;;
serve) command -v npm >/dev/null || packages="$packages nodejs npm" ;; # others' nodejs has npm in it
esac

if ! command -v dpkg-query >/dev/null; then
	echo "deps.sh: not a Debian system; the equivalents of these are needed:" $packages >&2
	exit 0
fi

missing=
for package in $packages; do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)
	[ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
if [ -n "$sudo" ] && ! command -v sudo >/dev/null; then
	echo "deps.sh: missing, and only root can install them: apt-get install$missing" >&2
	exit 3
fi

echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 # and start no service
install="$sudo apt-get install -y -q --no-install-recommends$missing"
$install >/dev/null 2>&1 && exit 0
$sudo apt-get update -q >/dev/null && $install >/dev/null && exit 0
echo "deps.sh: apt-get failed; run it by hand: apt-get install$missing" >&2
exit 3
