# A minimal Debian in a folder, to try things in: sourced by tools/fresh.sh and tests/dist/chroot.sh, which say in cannot()
# that there can be none here, and why; $tools is the folder of this file.  All mounts are made in namespaces that end with the script, however it ends:
# nothing stays mounted, and nothing is ever removed through a mount.

# Requires root and the tools that make a Debian, besides those named.
debian_needs() {
	[ "$(id -u)" = 0 ] || cannot "only root may make and mount one"
	command -v apt-get >/dev/null || cannot "this is not a Debian system: there is no apt-get to take the mirror from"
	for tool in debootstrap unshare pivot_root "$@"; do
		command -v "$tool" >/dev/null || cannot "$tool is missing"
	done
	unshare --mount --pid --fork --mount-proc true || cannot "this machine allows root no namespaces (in a container: it needs CAP_SYS_ADMIN)"
}

# Runs a command in namespaces of its own.  Whatever ends this shell ends all that runs there.
debian_apart() {
	setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc "$@"
}

# debian_make ROOT SUITE PACKAGE,... CACHE: CACHE keeps Debian's packages for the next time.
debian_make() {
	mirror=$(sh "$tools/mirror.sh")
	case $mirror in
	http*) ;;
	*) cannot "apt has no source over HTTP that a Debian can be made from (apt-get indextargets)" ;;
	esac
	rm -rf --one-file-system "$1"
	mkdir -p "$4"
	debootstrap --variant=minbase --include="$3" --cache-dir="$4" "$2" "$1" "$mirror"
}

mount_devices() {
	mount -t tmpfs -o mode=755 dev dev
	for node in null zero full random urandom tty; do
		: >"dev/$node"
		mount --bind /dev/$node "dev/$node"
	done
	mkdir -m 1777 "dev/shm" "dev/pts"
	mount -t tmpfs shm "dev/shm"
	mount -t devpts -o newinstance,ptmxmode=666 devpts "dev/pts"
	ln -s pts/ptmx "dev/ptmx"
	ln -s /proc/self/fd "dev/fd"
	for n in 0:stdin 1:stdout 2:stderr; do
		ln -s /proc/self/fd/${n%:*} "dev/${n#*:}"
	done
}

# Below debian_apart: makes ROOT, a mount, the root of this shell.  It is a real one, not a chroot, in which no browser
# could make its sandbox.
debian_enter() {
	cd "$1"
	mount -t proc proc proc
	mount -t sysfs -o ro sysfs sys
	mount_devices
	pivot_root . mnt
	umount -l /mnt
	cd /
}
