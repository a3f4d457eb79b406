# docs/reference/json-report.md, json-memory.md and json-diff.md are what tables of columns say:
# columns.sh BUILD SOURCE [--update].
set -eu
build=$(cd "$1" && pwd)
cd "$2"
work=$(mktemp)
trap 'rm -f "$work"' EXIT
report_page() {
	cat <<'END'
# `weir report --json`

`sh tests/docs/columns.sh build . --update` makes this page from the tables of columns in
`src/report` and `src/list`. `weir report --only NAME` shows one section, with the labels of the
column "in text". `--sort`, `--filter` and `--columns` take the keys.

Times are integers in nanoseconds, on the host's clock unless the key begins with `device_`.
Moments count from the beginning of the recording. Sizes are in bytes. `null` means not known,
never 0. No row is left out. A key with dots lies in an object of that name.
END
	"$build/tests/columns"
}
memory_page() {
	cat <<'END'
# `weir memory --json`

`sh tests/docs/columns.sh build . --update` makes this page from the tables of columns in
`src/report`, and `sh tests/docs/outputs.sh . --update` its end from `api/output.tbl`. Conventions
are those of [json-report.md](json-report.md).
END
	"$build/tests/columns" memory
	printf '\n'
	sed -n '/^## `replay`/,$p' docs/reference/json-memory.md
}
diff_page() {
	cat <<'END'
# `weir diff --json`

`sh tests/docs/columns.sh build . --update` makes this page from the tables of columns in
`src/diff`. Conventions are those of [json-report.md](json-report.md). With several runs a side,
values are those of the median run.
END
	"$build/tests/columns" diff
}
for name in report memory diff; do
	page=docs/reference/json-$name.md
	${name}_page >"$work"
	if [ "${3-}" = --update ]; then
		cat "$work" >$page
	else
		diff -u $page "$work" || {
			echo "sh tests/docs/columns.sh $build . --update writes the pages anew"
			exit 1
		}
		# It must be able to fail.
		! sed 's/alloc/allot/; s/launch/lunch/' "$work" | diff -q $page - >/dev/null
	fi
done
