# docs/reference/json-others.md, the end of json-memory.md and the rows of tables.md are what
# api/output.tbl says:
# outputs.sh SOURCE [--update].
set -eu
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
list='function list(keys) { gsub(" ", "`, `", keys); return "`" keys "`" }'
tables() { # COMMANDS LEVEL
	awk -F ' [|] ' -v commands="$1" -v level="$2" "$list"'
		function fold(text,    n, word, i, line) {
			n = split(text, word, " ")
			for (i = 1; i <= n; i++) {
				if (length(line word[i]) > 99) { print line; line = "" }
				line = line (line == "" ? "" : " ") word[i]
			}
			print line
		}
		/^#/ || $1 !~ commands { next }
		$1 != command && level == 3 { print "\n## `weir " $1 "`"; command = $1; object = "-"; table = 0 }
		$2 != object {
			print "\n" substr("###", 1, level) " " ($2 == "-" ? "Top level of `weir " $1 "`" : $2)
			object = $2; table = 0
		}
		$3 == "-" { print ""; fold($5); next }
		!table++ { print "\n| key | type | meaning |\n|---|---|---|" }
		{ print "| " list($3) " | " $4 " | " ($5 == "-" ? "|" : $5 " |") }' api/output.tbl
}
others_page() {
	cat <<'END'
# `--json` of the other commands

`sh tests/docs/outputs.sh . --update` makes this page from `api/output.tbl`. Conventions are those
of [json-report.md](json-report.md). The end of a key is its unit. Each object has `schema_version`,
which is 1.
END
	tables '^(hints|stat|trace|doctor|occupancy|kernels|predict|train|eval|whatif|sched|top)' 3
}
memory_page() { # after what columns.sh writes
	sed '/^## `replay`/,$d' docs/reference/json-memory.md | sed '$d'
	tables '^memory' 2
}
export_page() { # the rows of its tables
	awk -F ' [|] ' "$list"'
		FNR == NR { if ($1 == "export") rows[$2] = rows[$2] "| " list($3) " | " ($5 == "-" ? "|" : $5 " |") "\n"; next }
		/^#/ { object = $0; gsub(/^[^`]*`|`[^`]*$/, "", object); row = 0 }
		row && /^[|]/ { next }
		{ print; row = 0 }
		/^[|] (column|key) [|] meaning/ { getline; print; printf "%s", rows[object]; row = 1 }' api/output.tbl docs/reference/tables.md
}
bad=0
for name in others memory export; do
	page=docs/reference/json-$name.md
	[ $name != export ] || page=docs/reference/tables.md
	${name}_page >"$work/page"
	if [ "${2-}" = --update ]; then
		cat "$work/page" >$page
	else
		diff -u $page "$work/page" || bad=1
		# It must be able to fail.
		! sed 's/| `/| `s/' "$work/page" | diff -q $page - >/dev/null || bad=1
	fi
done
[ $bad = 0 ] || echo "sh tests/docs/outputs.sh . --update writes the pages anew"
exit $bad
