# The products of `make dist` and `make packages`: dist.sh SOURCE BUILD WHAT.  WHAT is `symbols`:
# what is in the tree (tests/dist/symbols.sh) and its size, `symbols_can_fail`, `elsewhere`:
# unpacked into a read-only folder, the tree works (tests/dist/try.sh), `spdx`, `sums`, `lintian`,
# or `rpm`: installed below another root, it works.  `symbols_aarch64` and `spdx_aarch64` look at
# the tree for arm64.
source=$1 build=$2
here=$(realpath "$(dirname "$0")")
. "$here/../cli/expect.sh"
if [ "$3" = symbols_can_fail ]; then # the program of an ordinary build needs more
	expect 1 'weir needs GLIBC_2\.3[0-9]' sh "$here/symbols.sh" "$build/bin"
	finish
	exit
fi
dist=$source/dist
case $3 in
lintian | sums | rpm)
	[ -e "$dist/SHA256SUMS" ] || { echo "no packages are here; run: make packages"; exit 77; }
	;;
esac
case $3 in
lintian)
	expect 0 '^$' sh -c "lintian --fail-on error,warning,info '$dist'/*.deb 2>&1 | grep -v 'root privileges'; true"
	finish
	exit
	;;
sums)
	cd "$dist" || exit 1
	expect 0 'tar.zst: OK' sha256sum --strict -c SHA256SUMS
	expect 0 '^[1-9][0-9]*$' sh -c 'ls | grep -c "deb$"'
	for file in *.deb *.rpm *.whl *.tar.zst *.spdx.json; do
		expect 0 "  $file" cat SHA256SUMS
	done
	sed 's/^..../0000/' SHA256SUMS >"$scratch/wrong"
	expect 1 ': FAILED' sha256sum --strict -c "$scratch/wrong"
	finish
	exit
	;;
rpm)
	[ "$(id -u)" = 0 ] || { echo "only root can install one"; exit 77; }
	expect 0 'digests OK' rpm --checksig --define '_pkgverify_level digest' "$dist"/weir-*.rpm
	expect 0 '' rpm --root "$scratch/root" --initdb
	line=$(sed -n 's/.*`rpm \(-i [^`]*\)`.*/\1/p' "$source/docs/install.md")
	expect 0 '' sh -c "cd '$dist' && rpm --root '$scratch/root' --nodeps ${line:-false}"
	expect 0 '' rpm --root "$scratch/root" --nodeps -i "$dist"/weirapi-*.rpm
	expect 1 '^$' sh -c "rpm -qp --provides '$dist'/weir-*.rpm | grep libcuda" # the simulated one is nobody's
	# It needs a shell, and of glibc and rpm what Red Hat 8 has: glibc 2.28, rpm 4.14.
	others() {
		rpm -qp --requires "$dist"/weir-*.rpm | grep -Ev "^(/bin/sh|rtld\(GNU_HASH\)|rpmlib\((CompressedFileNames|FileDigests|PayloadFilesHavePrefix|PayloadIsXz)\) .*|(ld-linux-[^(]*|lib(c|dl|m|pthread|rt)\.so\.[0-9])\((GLIBC_2\.([0-9]|1[0-9]|2[0-$1])(\.[0-9])*)?\)\(64bit\))$"
	}
	expect 1 '^$' others 8
	expect 0 '^libc.so.6\(GLIBC_2.28\)' others 7
	. "$here/try.sh"
	try_weir "$scratch/root/usr/bin/weir"
	expect 0 '^ok +installed +an RPM, ' "$scratch/root/usr/bin/weir" doctor --sim
	finish
	exit
	;;
esac
machine=$(uname -m)
case $3 in *_aarch64) machine=aarch64 ;; esac
set -- "${3%_aarch64}" "$source"/dist/weir-*-linux-"$machine".tar.zst
[ -e "$2" ] || { echo "no portable tree is here; run: make dist"; exit 77; }
[ $# = 2 ] || { echo "several versions are in dist/; remove the old ones: $*"; exit 1; }
zstd -dc "$2" | tar -C "$scratch" -xf - || exit 1
tree=$(echo "$scratch"/weir-*)

if [ "$1" = symbols ]; then
	expect 0 '^[1-9][0-9]* programs and libraries$' sh "$here/symbols.sh" "$tree"
	expect 0 "Machine: .*$([ $machine = aarch64 ] && echo AArch64 || echo X86-64)" readelf -h "$tree/bin/weir"
	expect 0 '^$' find "$2" -size +12582912c
	finish
	exit
fi

if [ "$1" = spdx ]; then
	expect 0 '^$' python3 "$here/spdx.py" "$tree/share/doc/weir/weir.spdx.json" "$tree"
	finish
	exit
fi

# Root may write it all the same: that nothing has changed is checked too.
chmod -R a-w "$tree"
sums() {
	(cd "$tree" && find . -type f -exec sha256sum {} + | sort)
}
sums >"$scratch/before"
. "$here/try.sh"
try_weir "$tree/bin/weir"
expect 0 '' env PYTHONPATH="$tree/lib/weir/python" python3 -c 'import weir; assert weir.open("x.weir")'
sums >"$scratch/after"
expect 0 '^$' diff "$scratch/before" "$scratch/after"
chmod -R u+w "$tree"
finish
