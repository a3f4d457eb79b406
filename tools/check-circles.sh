# Files of src/ include each other in no circle of more than three, NAME.c and NAME.h counted as one; no two modules have
# a file of one name, commands aside, which are named for what is typed; of more than 24 C files in a module it
# speaks, and passes: check-circles.sh ROOT.
cd "$1" || exit 1
find src -name '*.[ch]' | sort | awk '
	function dir_of(path) { sub(/\/[^\/]*$/, "", path); return path }
	/\.c$/ { if (++files[dir_of($0)] == 25) { print "  " dir_of($0) ": more than 24 C files; is a part of it a subject of its own? (advice)" } }
	{
		path = $0
		sub(/\.[ch]$/, "", path)
		name = path
		sub(/.*\//, "", name)
		if (path ~ /^src\/cmd\/[^\/]*$/)
			next
		if (name in at && at[name] != path) { print "  " path " has the name of " at[name]; bad = 1 }
		at[name] = path
	}
	END { exit bad }' || bad=1

# Every edge of the graph; then, file by file, all that can be reached: two that reach each other are of one circle.
find src -name '*.[ch]' | xargs grep -H '^#[ 	]*include "[a-z_]*/' | awk -F'"' '
	function unit(path) { sub(/^src\//, "", path); sub(/\.[ch].*$/, "", path); return path }
	{
		from = unit($1)
		to = unit($2)
		if (from != to && !((from, to) in edge)) {
			edge[from, to] = 1
			next_[from, ++count[from]] = to
		}
	}
	function reach(from, at,    i) {
		for (i = 1; i <= count[at]; i++)
			if (!((from, next_[at, i]) in reached)) {
				reached[from, next_[at, i]] = 1
				reach(from, next_[at, i])
			}
	}
	END {
		for (f in count) reach(f, f)
		for (f in count) {
			if (f in told) continue
			circle = f
			n = 1
			for (g in count)
				if (g != f && (f, g) in reached && (g, f) in reached) {
					circle = circle " " g
					told[g] = 1
					n++
				}
			if (n > 3) { print "  a circle of " n ": " circle; bad = 1 }
		}
		exit bad
	}' || bad=1
exit ${bad:-0}
