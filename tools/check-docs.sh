# The things that the documentation names are there: files and directories of this tree, targets of
# make and of links, commands, options and keys of JSON, the cases that guard a rule of the injected
# library.  Pages stay short, and each is in the index: check-docs.sh ROOT.
tools=$(cd "$(dirname "$0")" && pwd)
cd "$1" || exit 1
pages=$(ls ./*.md docs/*.md docs/*/*.md examples/*/*.md bench/*/*.md 2>/dev/null)
bad=0

# `tests/gpu/blas.sh BUILD` names tests/gpu/blas.sh.  NAME stands for any name, libraries are built.
named() {
	grep -oE '`(api|bench|docs|examples|include|man|python|sim|src|tests|tools|viewer)/[^` ]*' "$1" |
		sed 's/^`//; s/[.,;:]*$//' | grep -vE 'NAME|\.so(\.|$)'
	grep -oE '\]\([^)#:]+' "$1" | sed "s|^](|$(dirname "$1")/|"
}
for page in $pages; do
	for path in $(named "$page" | tr '*' '?' | sort -u); do
		set -- $(printf '%s' "$path" | tr '?' '*')
		[ -e "$1" ] && continue
		echo "  $page: there is no $path"
		bad=1
	done
done

# The layout has a line for each folder of the root, so that nothing that a test left there is taken for one of them.
for entry in $(git ls-files 2>/dev/null | sed 's|/.*|/|' | sort -u); do
	case $entry in .* | *.md | LICENSE | Makefile | CMake*) continue ;; esac
	grep -q "^$entry " docs/architecture.md && continue
	echo "  docs/architecture.md: the layout has no $entry"
	bad=1
done

# Targets of make.
[ ! -f Makefile ] || for page in $pages; do
	for target in $(grep -ohE '(^    |`|^\$ )make [a-z0-9-]+' "$page" | sed 's/.* //' | sort -u); do
		grep -qE "^([a-z-]+ )*$target( [a-z-]+)*:" Makefile && continue
		echo "  $page: there is no make $target"
		bad=1
	done
done

# Commands, options, keys of JSON.
keys=$(ls docs/reference/json-*.md 2>/dev/null)
[ -z "$pages" ] || awk -f "$tools/named.awk" api/command.tbl api/option.tbl $keys pages=1 $pages || bad=1

# Links to a heading: `page.md#its-words-in-lower-case`.
headings() {
	awk '/^```/ { code = !code } !code && /^#+ / { sub(/^#+ /, ""); print tolower($0) }' "$1" |
		sed 's/[^[:alnum:] _-]//g; s/ /-/g'
}
for page in $pages; do
	for link in $(grep -oE '\]\([^):]*#[^)]+' "$page" | sed 's/^](//'); do
		target=${link%%#*}
		target=${target:+$(dirname "$page")/$target}
		headings "${target:-$page}" 2>/dev/null | grep -qxF -- "${link#*#}" && continue
		echo "  $page: there is no heading $link"
		bad=1
	done
done

# LINES PAGE...
short() {
	most=$1
	shift
	for page; do
		[ -f "$page" ] && [ "$(wc -l <"$page")" -gt "$most" ] || continue
		echo "  $page: $(wc -l <"$page") lines, more than $most"
		bad=1
	done
}
short 120 README.md
short 250 docs/tutorial.md docs/comparison.md docs/troubleshooting.md docs/glossary.md docs/howto/*.md docs/explanation/*.md
for picture in docs/pictures/*; do
	[ -f "$picture" ] && [ "$(wc -c <"$picture")" -gt 153600 ] || continue
	echo "  $picture: $(wc -c <"$picture") bytes, more than 150 KiB"
	bad=1
done
[ ! -f docs/README.md ] || for page in docs/*.md docs/*/*.md; do
	[ "$page" = docs/README.md ] || grep -qF "](${page#docs/})" docs/README.md && continue
	echo "  docs/README.md: $page is not in it"
	bad=1
done

# The last column of the table of rules: NAME, or NAME* for several.
[ ! -f docs/hook-rules.md ] || for rule in $(awk -F'|' '/^\| \*\*/ { print $(NF - 1) }' docs/hook-rules.md |
	grep -oE '`[a-z_0-9]+(\.sh|\*)?`' | tr -d '`' | tr '*' '%' | sort -u); do
	case $rule in
	lint) continue ;;
	*.sh) [ -f "tests/hostile/$rule" ] && continue ;;
	*) awk -v whole="$rule" '
		BEGIN { many = sub(/%$/, "", whole) }
		!/^#/ && NF && (many ? index($1, whole) == 1 : $1 == whole) { found = 1 }
		END { exit !found }' tests/hostile/cases.tbl && continue ;;
	esac
	echo "  docs/hook-rules.md: there is no case $rule in tests/hostile"
	bad=1
done
exit $bad
