# Rooms include only those that src/modules.tbl lets them, which are below them: check-includes.sh ROOT.
cd "$1" || exit 1
find src -mindepth 2 -name '*.[chS]' | xargs awk '
	FILENAME == "src/modules.tbl" {
		if (/^#/ || !NF)
			next
		for (i = 2; i <= NF; i++) {
			may[$1, $i] = 1
			if (!($i in known)) {
				print "  src/modules.tbl: " $1 " stands below " $i
				bad = 1
			}
		}
		may[$1, $1] = known[$1] = 1
		next
	}
	FNR == 1 {
		module = FILENAME
		sub(/^src\//, "", module)
		sub(/\/[^\/]*$/, "", module)
		if (!(module in known)) {
			print "  " FILENAME ": module " module " is not in src/modules.tbl"
			bad = 1
		}
	}
	/^#[ \t]*include "[^"]*\// {
		split($0, quoted, "\"")
		other = quoted[2]
		sub(/\/[^\/]*$/, "", other)
		if ((other in known) && !((module, other) in may)) {
			print "  " FILENAME ":" FNR ": " module " may not include " quoted[2]
			bad = 1
		}
		if (other ~ /^\.\./) {
			print "  " FILENAME ":" FNR ": name the module, not a way to it"
			bad = 1
		}
	}
	END { exit bad }' src/modules.tbl
