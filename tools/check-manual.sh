# Every command has a page, with its synopsis, its options and examples: check-manual.sh ROOT.
cd "$1" || exit 1
awk '
	function has(file, pattern,    line, found) {
		while ((getline line < file) > 0)
			found = found || line ~ pattern
		close(file)
		return found
	}
	/^#/ || !NF { next }
	FILENAME ~ /option\.tbl$/ { options[$1] = 1; next }
	{ command[++n] = $1 }
	function want(file, pattern, what) {
		if (!has(file, pattern)) {
			print "  " file ": " what
			bad = 1
		}
	}
	END {
		for (i = 1; i <= n; i++) {
			page = "man/weir-" command[i] ".1.in"
			if (command[i] ~ /^(help|version)$/)
				continue
			want(page, "^@SYNOPSIS@$", "there is no page with a @SYNOPSIS@")
			want(page, "^\\.Sh EXAMPLES", "there are no EXAMPLES")
			if (command[i] in options)
				want(page, "^@OPTIONS@$", "its @OPTIONS@ are not shown")
		}
		want("man/weir.1.in", "^@COMMANDS@$", "the commands are not listed")
		exit bad
	}' api/option.tbl api/command.tbl
