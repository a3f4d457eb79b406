# docs/reference/sched-api.md says what include/weir/sched.h says: sched_api.sh SOURCE [--update].
set -eu
cd "$1"
page=docs/reference/sched-api.md
written() {
	cat <<'END'
# libweirapi

`sh tests/docs/sched_api.sh . --update` makes this page from `include/weir/sched.h`.
`examples/sched` has programs that use the library. [arbiter-protocol.md](../arbiter-protocol.md)
says what the scheduler does.

END
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
				sub(/ \{.*/, "", name)
				return name
			}
			if (declaration ~ /^typedef /)
				return "weir_sched, a handle"
			if (declaration ~ /^#define /) {
				split(declaration, name_of, " ")
				return name_of[2]
			}
			match(declaration, /weir_sched_[a-z_]+\(/)
			return substr(declaration, RSTART, RLENGTH) ")"
		}
		function flush_declaration() {
			name = heading(code)
			printf "## %s\n\n%s\n```c\n%s```\n\n", name, text, code
			text = code = ""
		}
		/^\/\*$/ { comment = 1; text = ""; listed = 0; next }
		/^\/\* .*\*\/$/ { line = $0; sub(/^\/\* /, "", line); sub(/ \*\/$/, "", line); text = line "\n"; next }
		comment && /^ \*\/$/ { comment = 0; if (!begun) { print text; text = ""; begun = 1 } next }
		comment { say($0); next }
		/^#define WEIR_SCHED_VERSION/ { code = $0 "\n"; flush_declaration(); next }
		/^#|^extern|^$|^}$/ { next }
		{ code = code $0 "\n" }
		/^[^ \t].*;$|^}.*;$|^\t[^;{]*\);$/ { flush_declaration() }
	' include/weir/sched.h | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}
[ "${2-}" != --update ] || {
	written >"$page"
	exit 0
}
written | diff -u "$page" - || {
	echo "$page is not what the header says; sh tests/docs/sched_api.sh . --update writes it anew"
	exit 1
}
# Each function that is declared has a section, and so has each that is defined.
for function in $(grep -ohE '^[a-z].*weir_sched_[a-z_]+\(' src/client/*.c | grep -oE 'weir_sched_[a-z_]+'); do
	grep -qx "## $function()" "$page" || {
		echo "$page: $function() is not declared in the header"
		exit 1
	}
done
