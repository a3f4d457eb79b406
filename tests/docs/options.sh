# docs/reference/options.md says what the tables of the command line say: options.sh SOURCE [--update].
set -eu
cd "$1"
page=docs/reference/options.md
written() {
	cat <<'END'
# Commands and options

`sh tests/docs/options.sh . --update` makes this page from `api/command.tbl` and `api/option.tbl`.
`weir help COMMAND` and `man weir-COMMAND` say more. Commands stand in the order of `weir help`.
Options of commands that run a program stand before `--`.
You may repeat an option whose argument ends in ….
END
	awk -F ' [|] ' '
		function print_wrapped(text, words, n, i, line) {
			n = split(text, words, " ")
			for (i = 1; i <= n; i++) {
				if (length(line) + length(words[i]) >= 100) {
					print line
					line = ""
				}
				line = line (line == "" ? "" : " ") words[i]
			}
			print line
		}
		/^#/ || !NF { next }
		{ for (i = 1; i <= NF; i++) gsub(/^[ \t]+|[ \t]+$/, "", $i) }
		FNR == NR { names[++n] = $1; synopsis[$1] = $3; help[$1] = $4; next }
		{
			option = $2 ($4 == "-" ? "" : $4 ~ /^\[/ ? "[=" substr($4, 2) : "=" $4) "`"
			sub(/\.\.\.`$/, "`…", option)
			if ($1 == "WEIR") {
				settings = settings "| `" option " | " ($5 == "-" ? "" : "`" $5 "`") " | " $6 " |\n"
				next
			}
			option = "`--" option
			k = split($1, of, "+") # a row may be of several commands
			for (i = 1; i <= k; i++)
				rows[of[i]] = rows[of[i]] "| " option " | " ($3 == "-" ? "" : "`-" $3 "`") " | " \
				($5 == "-" ? "" : "`" $5 "`") " | " $6 " |\n"
		}
		END {
			for (i = 1; i <= n; i++) {
				c = names[i]
				printf "\n## `weir %s%s`\n\n", c, synopsis[c] == "" ? "" : " " synopsis[c]
				print_wrapped(toupper(substr(help[c], 1, 1)) substr(help[c], 2) ".")
				if (rows[c] != "")
					printf "\n| option | | default | |\n|---|---|---|---|\n%s", rows[c]
			}
			printf "\n## Settings of `WEIR`\n\n[environment.md](environment.md) says how `WEIR` is read.\n\n" \
				"| setting | default | |\n|---|---|---|\n%s", settings
		}' api/command.tbl api/option.tbl
}
[ "${2-}" != --update ] || {
	written >"$page"
	exit 0
}
written | diff -u "$page" - || {
	echo "$page is not what the tables say; sh tests/docs/options.sh . --update writes it anew"
	exit 1
}
