# Objects of libweir.so use functions and variables of modules that src/modules.tbl lets them: check-links.sh ROOT BUILD.
# Generated sources belong to no module.  core declares hook_parts and hook_above, and the top defines them.
root=$(cd "$1" && pwd) objects=$2/src/hook/CMakeFiles/hook.dir
[ -d "$objects" ] || exit 0
cd "$objects" || exit 1
# Objects of sources that have gone stay in the build.
find . -name '*.o' ! -path '*__*' | sed 's/^..//' | while read -r o; do
	[ ! -e "$root/src/hook/${o%.o}" ] || echo "$o"
done | xargs -r nm -A -g | awk -v table="$root/src/modules.tbl" '
	BEGIN {
		while ((getline line < table) > 0) {
			n = split(line, w, " ")
			for (i = 1; i <= n; i++) may[w[1], w[i]] = 1
		}
		filled["hook_parts"] = filled["hook_above"] = 1
	}
	{
		module = "hook/" $1
		sub(/\/[^\/]*$/, "", module)
		object = $1
		sub(/:.*/, "", object)
	}
	$(NF - 1) == "U" { named[++uses] = $NF; by[uses] = module; in_object[uses] = object; next }
	{ of[$NF] = module }
	END {
		for (i = 1; i <= uses; i++) {
			other = of[named[i]]
			if (other == "" || filled[named[i]] || (by[i], other) in may)
				continue
			print "  " in_object[i] " may not use " named[i] ", which is of " other
			bad = 1
		}
		exit bad
	}'
