# Tries what a new user does: fresh.sh FOLDER.  Makes a minimal Debian 12 in FOLDER/root, clones what is committed
# into it and runs there the commands that README.md shows, as an ordinary user who has git, make and sudo and
# nothing else.  Then the lists of tests must be those of this machine.
#
# All mounts are made in a namespace that ends with this script, however it ends: nothing stays mounted, and nothing
# is ever removed through a mount.  FOLDER/cache keeps Debian's packages for the next time; FOLDER/root stays for
# looking until then.
set -eu
suite=bookworm
presets='release asan tsan'
packages=git,make,sudo,ca-certificates

cannot() {
	echo "fresh.sh: a fresh machine can't be made here: $*" >&2
	exit 3
}

if [ "${2-}" != inside ]; then
	[ "$(id -u)" = 0 ] || cannot "only root may make and mount one; run: sudo make fresh"
	command -v apt-get >/dev/null || cannot "this is not a Debian system: there is no apt-get to take the mirror from"
	for tool in debootstrap unshare pivot_root git cmake ctest; do
		command -v $tool >/dev/null || cannot "$tool is missing; run: apt-get install debootstrap util-linux git cmake"
	done
	unshare --mount --pid --fork --mount-proc true || cannot "this machine allows root no namespaces (in a container: it needs CAP_SYS_ADMIN)"
	mkdir -p "$1"
	# Whatever ends this shell ends all that runs in the namespaces.
	setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc sh "$0" "$(realpath "$1")" inside
	exit
fi

folder=$1
root=$folder/root
source=$(realpath "$(dirname "$0")/..")
trap 'exit 130' INT TERM

make_debian() {
	mirror=$(sh "$source/tools/mirror.sh") security=$(sh "$source/tools/mirror.sh" -security)
	case $mirror in
	http*) ;;
	*) cannot "apt has no source over HTTP that a Debian can be made from (apt-get indextargets)" ;;
	esac
	rm -rf --one-file-system "$root"
	mkdir -p "$folder/cache"
	debootstrap --variant=minbase --include=$packages --cache-dir="$folder/cache" $suite "$root" "$mirror"
	echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"
	[ -z "$security" ] || echo "deb $security $suite-security main" >>"$root/etc/apt/sources.list"
	apt-config dump | grep -i '^Acquire::.*proxy' >"$root/etc/apt/apt.conf.d/proxy" || true
	cp /etc/resolv.conf /etc/hosts "$root/etc"
	chroot "$root" useradd -m -s /bin/bash newcomer
	home=$(chroot "$root" sh -c 'echo ~newcomer')
	echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/newcomer"
}

# ctest's list of a build, in the folder $1.
tests_of() {
	ctest --test-dir "$1" -N | sed -n 's/^ *Test *#[0-9]*: //p' | sort
}

clone_source() {
	[ -z "$(git -C "$source" status --porcelain)" ] || echo "fresh.sh: what is not committed is not tried"
	git clone -q --no-hardlinks "$source" "$root$home/weir"
	for preset in $presets; do
		(cd "$root$home/weir" && cmake --fresh --preset $preset -B "$folder/$preset" >/dev/null)
		tests_of "$folder/$preset" >"$root$home/$preset"
	done
	chroot "$root" chown -R newcomer: $home
}

mount_devices() {
	mount -t tmpfs -o mode=755 dev "$root/dev"
	for node in null zero full random urandom tty; do
		: >"$root/dev/$node"
		mount --bind /dev/$node "$root/dev/$node"
	done
	mkdir -m 1777 "$root/dev/shm" "$root/dev/pts"
	mount -t tmpfs shm "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	for n in 0:stdin 1:stdout 2:stderr; do
		ln -s /proc/self/fd/${n%:*} "$root/dev/${n#*:}"
	done
}

# Its root is a real one, not a chroot, in which no browser could make its sandbox.
enter() {
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount --bind "$folder/cache" "$root/var/cache/apt/archives"
	mount_devices
	cd "$root"
	pivot_root . mnt
	umount -l /mnt
	cd /
}

# As the new user, with nothing of this environment but how many processors may be used.
as_newcomer() {
	setpriv --reuid newcomer --regid newcomer --init-groups --reset-env \
		sh -c "cd ~/weir${JOBS:+ && export JOBS=$JOBS} && $1" </dev/null
}

make_debian
clone_source
enter
# A line of code is a shell of its own; the commands of console blocks that need nothing more are one.
steps=$home/steps
mkdir $steps
awk -v to=$steps/ '
	function begin(what) { n += what != kind || what == "code"; kind = what; file = sprintf("%s%03d", to, n) }
	/^```/ { fence = !fence; runs = $0 ~ /^```console( fresh)?$/; next }
	fence && runs && /^\$ / { begin("console"); print substr($0, 3) >file }
	!fence && /^    / { begin("code"); print >file }' $home/weir/README.md
[ -e $steps/001 ] || cannot "README.md shows no commands"
status=0
for step in $steps/*; do
	as_newcomer "sh -ex $step" || { status=1; echo "fresh.sh: '$step' failed on a fresh machine; it is in $root" >&2; break; }
done
for preset in $presets; do
	build=$home/weir/build-$preset
	tests_of "${build%-release}" | diff "$home/$preset" - || {
		echo "fresh.sh: $preset: the fresh machine (>) has other tests than this one (<)" >&2
		status=1
	}
done
exit $status
