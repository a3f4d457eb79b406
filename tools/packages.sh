# Packs the portable tree that `make dist` made: packages.sh [MACHINE [TO]].  Debian's packages, an RPM, a wheel for pip
# and SHA256SUMS, of the trees of other machines too, appear in TO (dist), the same bytes from the same tree.
set -eu
umask 022
machine=${1:-$(uname -m)} to=${2:-dist}
cd "$(dirname "$0")/.."
case $machine in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) echo "packages.sh: $machine is neither x86_64 nor aarch64" >&2; exit 2 ;;
esac
sh tools/deps.sh packages
version=$(sed -n 's/^project(weir VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=weir-$version-linux-$machine
work=$PWD/build-dist-$machine/packages
[ -e "$to/$name.tar.zst" ] || { echo "packages.sh: $to/$name.tar.zst is missing; run: make dist" >&2; exit 3; }
rm -rf "$work"
mkdir -p "$work/deb"
zstd -dc "$to/$name.tar.zst" | tar -C "$work" -xf -
mv "$work/$name" "$work/tree"
SOURCE_DATE_EPOCH=$(stat -c %Y "$work/tree/bin/weir")
export SOURCE_DATE_EPOCH

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$work/tree/share/weir python3 -c 'import sys, weir_wheel; weir_wheel.build_wheel(sys.argv[1])' "$to"
rm "$work/tree/pyproject.toml" "$work/tree/share/weir/weir_wheel.py" # for pip alone

cp -r tools/dist/debian NEWS.md "$work/deb"
cp -a "$work/tree" "$work/deb/tree"
cat >"$work/deb/debian/changelog" <<END
weir ($version) unstable; urgency=medium

  * NEWS.md says what is new.

 -- The Weir maintainers <weir@weir.invalid>  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
{
	cat <<-END
		Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
		Comment: /usr/share/doc/weir/licences has the licences of the libraries that are linked in.

		Files: *
		Copyright: $(sed -n 's/^Copyright (c) //p' LICENSE)
		License: Expat
	END
	sed '1,4d; s/^$/./; s/^/ /' LICENSE
} >"$work/deb/debian/copyright"
(cd "$work/deb" && dpkg-buildpackage -a"$arch" -b -d -us -uc >"$work/deb.log" 2>&1) || { cat "$work/deb.log" >&2; exit 1; }
mv "$work"/*.deb "$to"

rpmbuild -bb --target "$machine-linux" --define "_topdir $work/rpm" --define "version_ $version" --define "tree $work/tree" \
	--define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" --define "_buildhost weir" \
	tools/dist/weir.spec >"$work/rpm.log" 2>&1 || { cat "$work/rpm.log" >&2; exit 1; }
mv "$work"/rpm/RPMS/*/*.rpm "$to"

cd "$to"
sha256sum weir-"$version"-linux-*.* ./*weir*[-_]"$version"[-_]*.deb ./*weir*-"$version"-*.rpm ./*weir*-"$version"-*.whl | sed 's,\./,,' >SHA256SUMS
cat SHA256SUMS
