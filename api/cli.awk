# The command line, from its tables.
#
#	awk -v out=WHAT [-v have="NAME ..."] [-v command=NAME] [-v date=DATE] -f cli.awk \
#		command.tbl option.tbl [value.tbl] [question.tbl] [metric.tbl] [PAGE]
#
# writes one file, chosen by out:
#   tables   the commands and their options in C      (commands.c)
#   settings what the variable WEIR may say (rows of WEIR)   (weir_options.h)
#   bash     completion for bash; so do zsh and fish, with the values of value.tbl
#   man      PAGE with its @MARKS@ filled in: @SYNOPSIS@ (title, name and synopsis) @OPTIONS@ @EXIT@ @COMMANDS@ @METRICS@
#   metrics  what fail conditions are about, of metric.tbl alone   (diff_metrics.h)
#
# have lists the commands that are built; rows of others are left out.  Without it all count.

BEGIN {
	n = split(have, list, " ")
	for (i = 1; i <= n; i++)
		built[list[i]] = 1
	ncommands = nrows = 0
	questions_help = "what people ask, and the command that answers it"
}

function fail(text)
{
	print FILENAME ":" FNR ": " text > "/dev/stderr"
	failed = 1
	exit 1
}

function trim(s)
{
	gsub(/^[ \t]+|[ \t]+$/, "", s)
	return s
}

# Splits a row into f[1..want]; " | " separates, a bare | may stand inside a field.
function fields(want,    i, n)
{
	n = split($0, f, / \| /)
	if (n != want)
		fail(want " fields expected, " n " found")
	for (i = 1; i <= n; i++)
		f[i] = trim(f[i])
}

function c_string(s)
{
	if (s == "-")
		return "NULL"
	gsub(/\\/, "\\\\", s)
	gsub(/"/, "\\\"", s)
	return "\"" s "\""
}

# The name of an option's value without the marks of a repeatable and of an optional one.
function argument(i,    a)
{
	a = row_argument[i]
	sub(/\.\.\.$/, "", a)
	gsub(/[][]/, "", a)
	return a
}

# Sentences for the man page: a capital letter, a full stop, short lines, and a line for each sentence.
function sentence(s,    n, i, word, line, text)
{
	n = split(toupper(substr(s, 1, 1)) substr(s, 2) ".", word, " ")
	for (i = 1; i <= n; i++) {
		if (length(line word[i]) > 76 || line ~ /[.]$/) {
			text = text line "\n"
			line = ""
		}
		line = line (line == "" ? "" : " ") word[i]
	}
	return text line
}

out == "man" && FILENAME ~ /\.in$/ {
	if ($0 == "@SYNOPSIS@")
		man_head()
	else if ($0 == "@EXIT@")
		print ".Sh EXIT STATUS\nAs in\n.Xr weir 1 ."
	else if ($0 == "@OPTIONS@")
		man_options()
	else if ($0 == "@COMMANDS@")
		man_commands()
	else if ($0 == "@METRICS@")
		man_metrics()
	else {
		if (/@[A-Z]+@/)
			fail("unknown mark: " $0)
		print
	}
	next
}

/^#/ || /^[ \t]*$/ { next }

FILENAME ~ /command\.tbl$/ {
	fields(4)
	if (f[1] in help_of)
		fail("command " f[1] " stands twice")
	help_of[f[1]] = f[4]
	group_of[f[1]] = f[2]
	arguments_of[f[1]] = f[3]
	if (have == "" || f[1] in built)
		commands[++ncommands] = f[1]
	next
}

FILENAME ~ /option\.tbl$/ {
	fields(6)
	if (f[1] == "WEIR") {
		setting[++nsettings] = f[2]
		usage = usage "[" f[2] (f[4] == "-" ? "" : f[4] ~ /^\[/ ? "[=" substr(f[4], 2) : "=" f[4]) ",]"
		next
	}
	nnames = split(f[1], names, "+")
	for (name = 1; name <= nnames; name++)
		add_row(names[name])
	next
}

FILENAME ~ /question\.tbl$/ {
	fields(6)
	question_words[++nquestions] = f[1]
	question_here[nquestions] = f[3]
	question_text[nquestions] = f[4]
	next
}

FILENAME ~ /metric\.tbl$/ {
	fields(5)
	metric_name[++nmetrics] = f[1]
	metric_of[nmetrics] = f[2]
	metric_unit[nmetrics] = f[3]
	metric_constant[nmetrics] = f[4]
	metric_help[nmetrics] = f[5]
	if (!(("diff", "fail-on") in values))
		values["diff", "fail-on"] = "help"
	values["diff", "fail-on"] = values["diff", "fail-on"] " " f[1]
	next
}

FILENAME ~ /value\.tbl$/ {
	fields(3)
	nnames = split(f[1], names, "+")
	for (name = 1; name <= nnames; name++) {
		if (f[2] != "-" && !((names[name], f[2]) in seen))
			fail("values of an unknown option " f[2] " of " names[name])
		values[names[name], f[2]] = f[3]
	}
	next
}

# A row may be of several commands: record+run.
function add_row(c)
{
	if (!(c in help_of))
		fail("option " f[2] " of an unknown command " c)
	if ((c, f[2]) in seen || (f[3] != "-" && (c, f[3]) in seen))
		fail("option " f[2] " of " c " stands twice")
	if (length(f[3]) != 1 || f[2] == "help" || f[3] == "h")
		fail("option " f[2] ": bad letter or reserved name")
	seen[c, f[2]] = seen[c, f[3]] = 1
	nrows++
	row_command[nrows] = c
	row_name[nrows] = f[2]
	row_letter[nrows] = f[3]
	row_argument[nrows] = f[4]
	row_default[nrows] = f[5]
	row_help[nrows] = f[6]
}

function settings(    i)
{
	print "/* Made by api/cli.awk from option.tbl. */"
	print "#pragma once\n"
	printf "#define WEIR_OPTIONS(X)"
	for (i = 1; i <= nsettings; i++)
		printf " X(%s)", setting[i]
	print "\n#define WEIR_OPTIONS_USAGE " c_string(usage)
	for (i = 1; i <= nsettings; i++)
		print "#define WEIR_OPTION_" setting[i] " " c_string(setting[i])
}

function tables(    i, c)
{
	print "/* Made by api/cli.awk from command.tbl, option.tbl and question.tbl. */"
	print "#include \"cmd/cli/options.h\"\n\n#include <stddef.h>\n"
	for (i = 1; i <= ncommands; i++)
		print "int cmd_" commands[i] "(const struct options *o);"
	print "\nconst struct command commands[] = {"
	for (i = 1; i <= ncommands; i++) {
		c = commands[i]
		printf "\t{ %s, %s, %s, %s, cmd_%s },\n", c_string(c), c_string(group_of[c]),
			c_string(arguments_of[c]), c_string(help_of[c]), c
	}
	print "\t{ NULL, NULL, NULL, NULL, NULL },\n};\n"
	print "const struct option_row option_rows[] = {"
	for (c = 1; c <= ncommands; c++)
		for (i = 1; i <= nrows; i++)
			if (row_command[i] == commands[c])
				option_row(i)
	print "\t{ NULL, NULL, 0, NULL, NULL, NULL },\n};\n"
	print "const struct question_row question_rows[] = {"
	for (i = 1; i <= nquestions; i++)
		printf "\t{ %s, %s, %s },\n", c_string(" " question_words[i] " "),
			c_string(question_here[i]), c_string(question_text[i])
	print "\t{ NULL, NULL, NULL },\n};"
}

function option_row(i)
{
	printf "\t{ %s, %s, %s, %s, %s, %s },\n", c_string(row_command[i]),
		c_string(row_name[i]), row_letter[i] == "-" ? "0" : "'" row_letter[i] "'",
		c_string(row_argument[i]), c_string(row_default[i]), c_string(row_help[i])
}

# The kind of a value: "words", "files", "directories", or "" for what nobody can know.
function kind_of_value(c, name, what)
{
	if ((c, name) in values)
		return "words"
	gsub(/[][.]/, "", what)
	return what ~ /^(FILE|MODEL)$/ ? "files" : what == "DIRECTORY" ? "directories" : ""
}

function starts_program(c) { return arguments_of[c] ~ /PROGRAM/ }
function takes_files(c) { return arguments_of[c] ~ /FILE|A\.\.\./ }

function bash_value(i,    kind, names, what)
{
	kind = kind_of_value(row_command[i], row_name[i], row_argument[i])
	names = "'" row_command[i] " --" row_name[i] "'"
	if (row_letter[i] != "-")
		names = names "|'" row_command[i] " -" row_letter[i] "'"
	if (row_argument[i] == "-")
		return
	what = kind == "files" ? "_weir_files" : kind == "directories" ? "_weir_files -d" : ":"
	if (kind == "words")
		what = "_weir_words '" values[row_command[i], row_name[i]] "'"
	print "\t" names ") " what " ;;"
}

# The options that take the next word as their value.
function taking_words(c,    i, list)
{
	for (i = 1; i <= nrows; i++)
		if (row_command[i] == c && row_argument[i] !~ /^[-[]/)
			list = list " --" row_name[i] (row_letter[i] == "-" ? "" : " -" row_letter[i])
	return list
}

function bash_command(c,    i)
{
	printf "\t%s)\n\t\toptions='--help", c
	for (i = 1; i <= nrows; i++)
		if (row_command[i] == c)
			printf " --%s%s", row_name[i], row_argument[i] ~ /^[-[]/ ? "" : "="
	print "'"
	print "\t\twith='" taking_words(c) " '"
	if ((c, "-") in values)
		print "\t\targuments='" values[c, "-"] "'"
	if (starts_program(c))
		print "\t\tprogram=yes"
	print "\t\t;;"
}

function bash(    i, c, words)
{
	words = commands[1]
	for (i = 2; i <= ncommands; i++)
		words = words " " commands[i]
	print "# bash completion for weir, made by api/cli.awk\n"
	print "_weir_words()\n{"
	print "\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$word\")"
	print "\t[[ ${COMPREPLY[0]-} == *[=:] ]] && compopt -o nospace 2>/dev/null\n}\n"
	print "_weir_files()\n{"
	print "\tmapfile -t COMPREPLY < <(compgen ${1:--f} -- \"$word\")"
	print "\tcompopt -o filenames 2>/dev/null\n}\n"
	print "# Where the program begins that a command starts, 0: not yet.  Words are split at = and :."
	print "_weir_program()\n{"
	print "\tlocal i"
	print "\tfor ((i = 2; i < COMP_CWORD; i++)); do"
	print "\t\tcase ${COMP_WORDS[i]} in"
	print "\t\t--) echo $((i + 1)); return ;;"
	print "\t\t-*) [[ $with == *\" ${COMP_WORDS[i]} \"* && ${COMP_WORDS[i + 1]-} != = ]] && ((i++)) ;;"
	print "\t\t= | :) ((i++)) ;;"
	print "\t\t*) [[ ${COMP_WORDS[i + 1]-} != : ]] && { echo $i; return; } ;;"
	print "\t\tesac\n\tdone\n\techo 0\n}\n"
	print "_weir_value()\n{\n\tcase \"${COMP_WORDS[1]} $1\" in"
	for (c = 1; c <= ncommands; c++)
		for (i = 1; i <= nrows; i++)
			if (row_command[i] == commands[c])
				bash_value(i)
	print "\tesac\n}\n"
	print "_weir()\n{"
	print "\tlocal word=${COMP_WORDS[COMP_CWORD]} options= with=' ' arguments= program= at"
	print "\tlocal before=${COMP_WORDS[COMP_CWORD - 1]}"
	print "\tCOMPREPLY=()"
	print "\tif ((COMP_CWORD == 1)); then"
	print "\t\t_weir_words '" words " --help --version'"
	print "\t\treturn\n\tfi"
	print "\tcase ${COMP_WORDS[1]} in"
	for (c = 1; c <= ncommands; c++)
		bash_command(commands[c])
	print "\tesac"
	print "\tif [[ $program ]] && at=$(_weir_program) && ((at)); then"
	print "\t\tif declare -F _command_offset >/dev/null; then _command_offset $at"
	print "\t\telif ((COMP_CWORD == at)); then _weir_files -c; else _weir_files; fi"
	print "\telif [[ $word == = ]]; then word= ; _weir_value \"$before\""
	print "\telif [[ $before == = ]]; then _weir_value \"${COMP_WORDS[COMP_CWORD - 2]}\""
	print "\telif [[ $with == *\" $before \"* ]]; then _weir_value \"$before\""
	print "\telif [[ ${COMP_WORDS[1]} == help ]]; then _weir_words '" words " questions'"
	print "\telif [[ $word == -* ]]; then _weir_words \"$options\""
	print "\telif [[ $program ]]; then _weir_files -c"
	print "\telif [[ $arguments ]]; then"
	print "\t\t_weir_words \"$arguments\""
	print "\t\t((${#COMPREPLY[@]})) || _weir_files"
	print "\telse _weir_files\n\tfi"
	print "}\ncomplete -F _weir weir"
}

# Text inside a single-quoted _arguments specification.
function zsh_text(s)
{
	gsub(/\[/, "\\[", s)
	gsub(/\]/, "\\]", s)
	gsub(/:/, "\\:", s)
	gsub(/'/, "'\\''", s)
	return s
}

function zsh_action(c, name, what,    kind)
{
	kind = kind_of_value(c, name, what)
	if (kind == "words")
		return "(" zsh_text(values[c, name]) ")"
	return kind == "files" ? "_files" : kind == "directories" ? "_files -/" : " "
}

function zsh_option(i,    value, spec)
{
	value = row_argument[i] == "-" ? "" : (row_argument[i] ~ /^\[/ ? "::" : ":") argument(i) ":" \
		zsh_action(row_command[i], row_name[i], row_argument[i])
	spec = "[" zsh_text(row_help[i]) "]" value "'"
	if (row_letter[i] != "-")
		printf " \\\n\t\t\t'-%s%s", row_letter[i], spec
	printf " \\\n\t\t\t'%s--%s%s%s", row_argument[i] ~ /\.\.\.$/ ? "*" : "", row_name[i],
		value == "" ? "" : row_argument[i] ~ /^\[/ ? "=-" : "=", spec
}

function zsh_arguments(c)
{
	if (starts_program(c))
		return "'(-)1:program:_command_names -e' '*::arguments:_normal'"
	if ((c, "-") in values)
		return "'*:argument:{ compadd " values[c, "-"] "; _files }'"
	return c == "help" ? "'1:command:->commands'" : "'*:argument:_files'"
}

function zsh(    i, c)
{
	print "#compdef weir\n# made by api/cli.awk"
	print "_weir()\n{\n\tlocal -a commands=("
	for (c = 1; c <= ncommands; c++)
		print "\t\t'" commands[c] ":" zsh_text(help_of[commands[c]]) "'"
	print "\t)"
	print "\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\t\treturn\n\tfi"
	print "\tshift words\n\t((CURRENT--))"
	print "\tcase ${words[1]} in"
	for (c = 1; c <= ncommands; c++) {
		printf "\t%s)\n\t\t_arguments -S '--help[explain the command]'", commands[c]
		for (i = 1; i <= nrows; i++)
			if (row_command[i] == commands[c])
				zsh_option(i)
		print " \\\n\t\t\t" zsh_arguments(commands[c])
		if (commands[c] == "help")
			print "\t\tcommands+=('questions:" zsh_text(questions_help) "')" \
				"\n\t\t[[ $state == commands ]] && _describe command commands"
		print "\t\t;;"
	}
	print "\tesac\n}\n_weir \"$@\""
}

function fish_text(s)
{
	gsub(/\\/, "\\\\", s)
	gsub(/'/, "\\'", s)
	return "'" s "'"
}

function fish_option(i,    kind, line)
{
	kind = kind_of_value(row_command[i], row_name[i], row_argument[i])
	line = "complete -c weir -n '__fish_seen_subcommand_from " row_command[i] "' -l " row_name[i]
	if (row_letter[i] != "-")
		line = line " -s " row_letter[i]
	if (row_argument[i] !~ /^[-[]/)
		line = line (kind == "files" ? " -rF" : " -x")
	if (kind == "words")
		line = line " -a " fish_text(values[row_command[i], row_name[i]])
	else if (kind == "directories")
		line = line " -a '(__fish_complete_directories)'"
	print line " -d " fish_text(row_help[i])
}

function fish(    i, c, when)
{
	print "# fish completion for weir, made by api/cli.awk"
	print "complete -c weir -f"
	for (c = 1; c <= ncommands; c++) {
		when = "complete -c weir -n '__fish_seen_subcommand_from " commands[c] "'"
		print "complete -c weir -n __fish_use_subcommand -a " commands[c] " -d " fish_text(help_of[commands[c]])
		for (i = 1; i <= nrows; i++)
			if (row_command[i] == commands[c])
				fish_option(i)
		if (starts_program(commands[c]))
			print when " -xa '(__fish_complete_subcommand --fcs-skip=2" taking_words(commands[c]) ")'"
		else if ((commands[c], "-") in values)
			print when " -Fa " fish_text(values[commands[c], "-"])
		else if (takes_files(commands[c]))
			print when " -F"
		if (commands[c] == "help")
			for (i = 1; i <= ncommands; i++)
				print when " -a " commands[i] " -d " fish_text(help_of[commands[i]])
		if (commands[c] == "help")
			print when " -a questions -d " fish_text(questions_help)
	}
}

# mdoc for one way to write option i: its long name with the value.
function mdoc_long(i)
{
	if (row_argument[i] ~ /^\[/)
		return "Fl -" row_name[i] " Ns Oo = Ns Ar " argument(i) " Oc"
	return "Fl -" row_name[i] (row_argument[i] == "-" ? "" : "= Ns Ar " argument(i))
}

function man_metrics(    i, of)
{
	of["table"] = "Before a metric, what it is of:"
	of["one"] = "Before a metric, or alone for its median, one of these:"
	of["row"] = "Of each kernel, call, operator or phase; the condition fails when it is true for any of them:"
	of["rows"] = "How many of them have a verdict:"
	of["run"] = "Of the whole run:"
	for (i = 1; i <= nmetrics; i++) {
		if (metric_of[i] != metric_of[i - 1]) {
			if (i > 1)
				print ".El\n.Pp"
			print of[metric_of[i]]
			print ".Bl -tag -width graph_launches -compact"
		}
		print ".It Cm " metric_name[i]
		print metric_help[i]
	}
	print ".El"
}

function c_metrics(    i)
{
	print "/* Made of api/metric.tbl by api/cli.awk. */"
	print "static const struct metric_row metric_rows[] = {"
	for (i = 1; i <= nmetrics; i++)
		printf "\t{ %s, %s,\n\t\tMETRIC_OF_%s, %s, UNIT_%s },\n", c_string(metric_name[i]), \
			c_string(metric_help[i]), toupper(metric_of[i]), metric_constant[i], toupper(metric_unit[i])
	print "};"
}

function man_head()
{
	print ".Dd " date "\n.Dt WEIR-" toupper(command) " 1\n.Os\n.Sh NAME\n.Nm weir-" command
	print ".Nd " help_of[command] "\n.Sh SYNOPSIS"
	man_synopsis()
}

function man_synopsis(    i, n, w, words, open, left)
{
	print ".Nm weir " command
	for (i = 1; i <= nrows; i++)
		if (row_command[i] == command)
			print ".Op " mdoc_long(i) (row_argument[i] ~ /\.\.\.$/ ? " ..." : "")
	n = split(arguments_of[command], words, " ")
	for (i = 1; i <= n; i++) {
		w = words[i]
		open = sub(/^\[/, "", w)
		if (w == "--") {
			print open ? ".Oo Fl -" : ".Fl -"
			left += open
		} else if (open && sub(/\]+$/, "", w))
			print ".Op Ar " w
		else if (open) {
			print ".Oo Ar " w
			left++
		} else {
			sub(/\]+$/, "", w)
			print ".Ar " w
		}
	}
	while (left--)
		print ".Oc"
}

function man_options(    i)
{
	print ".Bl -tag -width Ds"
	for (i = 1; i <= nrows; i++) {
		if (row_command[i] != command)
			continue
		if (row_letter[i] != "-")
			printf ".It Fl %s%s , %s\n", row_letter[i],
				row_argument[i] ~ /^[-[]/ ? "" : " Ar " argument(i), mdoc_long(i)
		else
			print ".It " mdoc_long(i)
		print sentence(row_help[i])
		if (row_default[i] != "-")
			print "The default is\n.Ql " row_default[i] " ."
		if (row_argument[i] ~ /\.\.\.$/)
			print "You may repeat this option."
	}
	print ".It Fl h , Fl -help\nShow this help."
	print ".El"
	if ((command, "steady") in seen && command != "report")
		print ".Pp\n.Xr weir-report 1\nsays what\n.Ar FILE\nmay be and what a part of it contains."
}

function man_commands(    i)
{
	print ".Bl -tag -width version"
	for (i = 1; i <= ncommands; i++)
		print ".It Cm " commands[i] "\n" sentence(help_of[commands[i]])
	print ".El"
}

END {
	if (failed)
		exit 1
	if (out == "tables")
		tables()
	else if (out == "bash")
		bash()
	else if (out == "zsh")
		zsh()
	else if (out == "fish")
		fish()
	else if (out == "settings")
		settings()
	else if (out == "metrics")
		c_metrics()
	else if (out != "man")
		fail("out=" out "?")
}
