# A generated header is made before each file that includes it is compiled, whatever the order in which the builder takes
# them: check-generated.sh ROOT BUILD.  The builder knows the included files of all that it has
# compiled.
build=$(cd "$2" && pwd)
[ -f "$build/build.ninja" ] && command -v ninja >/dev/null || exit 0
ninja -C "$build" -t deps | awk -v build="$build/" '
	function name(word) {
		sub(/^\$\{cmake_ninja_workdir\}/, "", word)
		if (!index(word, build))
			return word
		return substr(word, length(build) + 1)
	}
	# All that has to be there before the object is made.
	function reach(object,    stack, n, at, i) {
		split("", before)
		stack[n = 1] = object
		while (n) {
			at = stack[n--]
			for (i = 1; i <= count[at]; i++)
				if (!(input[at, i] in before)) {
					before[input[at, i]] = 1
					stack[++n] = input[at, i]
				}
		}
	}
	FILENAME != "-" {
		line = line $0
		if (sub(/\$$/, "", line))
			next
		if (sub(/^build /, "", line) && (colon = index(line, ": "))) {
			outputs = split(substr(line, 1, colon - 1), output, " ")
			inputs = split(substr(line, colon + 2), word, " ")
			for (i = 1; i <= outputs; i++) {
				made[name(output[i])] = 1
				for (k = 2; k <= inputs; k++)
					if (word[k] !~ /^[|]+$/)
						input[name(output[i]), ++count[name(output[i])]] = name(word[k])
			}
		}
		line = ""
		next
	}
	/^[^ ].*: #deps/ {
		object = substr($0, 1, index($0, ": ") - 1)
		reached = 0
		next
	}
	/^ / {
		header = name($1)
		if (!(header in made))
			next
		if (!reached++)
			reach(object)
		if (!(header in before)) {
			print "  " object " may be compiled before " header " is made"
			bad = 1
		}
	}
	END { exit bad }' "$build/build.ninja" -
