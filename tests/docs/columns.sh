# docs/reference/json-report.md is what the report's tables of columns say: columns.sh BUILD SOURCE [--update].
set -eu
build=$(cd "$1" && pwd)
cd "$2"
page=docs/reference/json-report.md
written() {
	cat <<'END'
# `weir report --json`

`sh tests/docs/columns.sh build . --update` makes this page from the tables of columns in
`src/report`. `weir report --only NAME` shows one section, with the labels of the column "in text".
`--sort`, `--filter` and `--columns` take the keys.

Times are integers in nanoseconds, on the host's clock unless the key begins with `device_`.
Moments count from the beginning of the recording. Sizes are in bytes. `null` means not known,
never 0. No row is left out. A key with dots lies in an object of that name.
END
	"$build/tests/columns"
}
if [ "${3-}" = --update ]; then
	written >"$page"
	exit 0
fi
written | diff -u "$page" - || {
	echo "sh tests/docs/columns.sh $build . --update writes the page anew"
	exit 1
}
# It must be able to fail.
! written | sed 's/launch/lunch/' | diff -q "$page" - >/dev/null
