# Tries what a new user does: fresh.sh FOLDER.  Makes a minimal Debian 12 in FOLDER/root, clones what is committed
# into it and runs there the commands that README.md shows, and that of docs/install.md for the source, as an ordinary
# user who has git, make and sudo and nothing else.  Then the lists of tests must be those of this machine.
# FOLDER/cache keeps Debian's packages for the next time; FOLDER/root stays for looking until then.
set -eu
suite=bookworm
presets='release asan tsan'
packages=git,make,sudo,ca-certificates

cannot() {
	echo "fresh.sh: a fresh machine can't be made here: $*" >&2
	exit 3
}
tools=$(realpath "$(dirname "$0")")
. "$tools/debian.sh"

if [ "${2-}" != inside ]; then
	debian_needs git cmake ctest
	mkdir -p "$1"
	debian_apart sh "$0" "$(realpath "$1")" inside
	exit
fi

folder=$1
root=$folder/root
source=$(realpath "$tools/..")
trap 'exit 130' INT TERM

make_debian() {
	debian_make "$root" $suite $packages "$folder/cache"
	security=$(sh "$tools/mirror.sh" -security)
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

# As the new user, with nothing of this environment but how many processors may be used.
as_newcomer() {
	setpriv --reuid newcomer --regid newcomer --init-groups --reset-env \
		sh -c "cd ~/weir${JOBS:+ && export JOBS=$JOBS} && $1" </dev/null
}

make_debian
clone_source
mount --bind "$root" "$root"
mount --bind "$folder/cache" "$root/var/cache/apt/archives"
debian_enter "$root"
# A line of code is a shell of its own; the commands of console blocks that need nothing more are one.
steps=$home/steps
mkdir $steps
awk -v to=$steps/ '
	function begin(what) { n += what != kind || what == "code"; kind = what; file = sprintf("%s%03d", to, n) }
	/^```/ { fence = !fence; runs = $0 ~ /^```console( fresh)?$/; next }
	fence && runs && /^\$ / { begin("console"); print substr($0, 3) >file }
	!fence && /^    / { begin("code"); print >file }' $home/weir/README.md
[ -e $steps/001 ] || cannot "README.md shows no commands"
{
	sed -n 's/^| .*from source | `\([^`]*\)`.*/\1/p' $home/weir/docs/install.md | grep .
	echo '~/.local/bin/weir version'
} >$steps/install
status=0
for step in $steps/*; do
	as_newcomer "sh -ex $step" || { status=1; echo "fresh.sh: '$step' failed on a fresh machine; it is in $root" >&2; break; }
done
for preset in $presets; do
	build=$home/weir/build-$preset
	[ -e "${build%-release}" ] || as_newcomer "cmake --preset $preset >/dev/null"
	tests_of "${build%-release}" | diff "$home/$preset" - || {
		echo "fresh.sh: $preset: the fresh machine (>) has other tests than this one (<)" >&2
		status=1
	}
done
exit $status
