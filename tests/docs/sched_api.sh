# Pages of docs/reference say what the headers say: sched-api.md and include/weir/sched.h, kernels-api.md and
# include/weir/kernels.h: sched_api.sh SOURCE [--update].
set -eu
cd "$1"
intro() {
	echo "\`sh tests/docs/sched_api.sh . --update\` makes this page from \`include/weir/$1.h\`."
	[ "$1" != sched ] || cat <<'END'
`examples/sched` has programs that use the library. [arbiter-protocol.md](../arbiter-protocol.md)
says what the scheduler does.
END
	[ "$1" != kernels ] || echo "[Use Weir's kernels](../howto/use-kernels.md) shows programs that use the library."
}
written() { # HEADER LIBRARY
	printf '# %s\n\n' "$2"
	intro "$1"
	echo
	awk '
		# One line of a comment: text, "  name   what it is" of a parameter, or the rest of one.
		function say(line) {
			sub(/^ \* ?/, "", line)
			if (line ~ /^  [a-z_]+  /) {
				name = line
				sub(/^ +/, "", name); sub(/ .*/, "", name)
				sub(/^ +[a-z_]+ +/, "", line)
				text = text (listed ? "" : "\n") "* `" name "`: " line "\n"
				listed = 1
			} else if (line ~ /^   +[^ ]/) {
				sub(/^ +/, "", line)
				text = text "  " line "\n"
			} else {
				text = text (listed && line != "" ? "\n" : "") line "\n"
				listed = 0
			}
		}
		function heading(declaration,    name) {
			if (declaration ~ /^(enum|struct) /) {
				name = declaration
				sub(/( \{|;).*/, "", name)
				return name
			}
			if (declaration ~ /^typedef /)
				return "weir_sched, a handle"
			if (declaration ~ /^#define /) {
				split(declaration, name_of, " ")
				return name_of[2]
			}
			match(declaration, /weir_[a-z_]+\(/)
			return substr(declaration, RSTART, RLENGTH) ")"
		}
		function flush_declaration() {
			name = heading(code)
			printf "## %s\n\n%s\n```c\n%s```\n\n", name, text, code
			text = code = ""
		}
		/^\/\*$/ { comment = 1; text = ""; listed = 0; next }
		/^\/\* .*\*\/$/ { line = $0; sub(/^\/\* /, "", line); sub(/ \*\/$/, "", line); text = line "\n"; next }
		/^\/\* / { comment = 1; text = ""; listed = 0; say(" " substr($0, 2)); next }
		comment && / [^ ].* \*\/$/ { sub(/ \*\/$/, ""); say($0); comment = 0; next }
		comment && /^ \*\/$/ { comment = 0; if (!begun) { print text; text = ""; begun = 1 } next }
		comment { say($0); next }
		/^#define WEIR_[A-Z]+_VERSION/ { code = $0 "\n"; flush_declaration(); next }
		/^#|^extern|^$|^}$/ { next }
		{ code = code $0 "\n" }
		/^[^ \t].*;$|^}.*;$|^\t[^;{]*\);$/ { flush_declaration() }
	' "include/weir/$1.h" | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}
# HEADER LIBRARY FOLDER
check() {
	page=docs/reference/$1-api.md
	[ "$update" != --update ] || {
		written "$1" "$2" >"$page"
		return
	}
	[ -f "include/weir/$1.h" ] || return 0 # the controls have one of them
	written "$1" "$2" | diff -u "$page" - || {
		echo "$page is not what the header says; sh tests/docs/sched_api.sh . --update writes it anew"
		exit 1
	}
	# Each function that is declared has a section, and so has each that is defined.
	for function in $(grep -ohE "$4" "src/$3"/*.c | grep -oE 'weir_[a-z_]+'); do
		grep -qx "## $function()" "$page" || {
			echo "$page: $function() is not declared in the header"
			exit 1
		}
	done
}
update=${2-}
check sched libweirapi client '^[a-z].*weir_sched_[a-z_]+\('
check kernels libweirkernels kernels '^[a-z][a-z0-9_ *]*[ *]weir_(kernels|rows|gemm|conv|plan)_[a-z_]+\('
