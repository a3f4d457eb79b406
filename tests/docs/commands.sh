# The commands that a page shows do what the page says: commands.sh BUILD SOURCE PAGE.
#
# A page is run in a scratch folder that looks like the root of the source tree, on the simulated driver.  Its
# fences say what is done with them:
#
#	```console           each `$ COMMAND` runs and exits with 0; a line shown under it is a line of its output,
#	                     in the order shown.  Lines may be left out; "…" stands for any text in a line.  Exports
#	                     hold for the commands that follow.
#	```console fresh     the same, but numbers and their units are not compared: the times of a new recording
#	```console with-T    the same, where the tool T is installed; with-onnxruntime: where `make onnxruntime` was run
#	```console needs-X   is not run here: it needs X (gpu, docker, slurm, mpi, network), or builds (build)
#	```sh NAME           a file: it is there as NAME for the commands after it
#
# With GPU=1 in the environment it is the other way round: on the machine's GPU, the fences that need one run, and no others.
#
# Ports 8000 to 8009 of 127.0.0.1 stand for free ones. A server that a page leaves behind, with its process id in a
# file *.pid, is ended.
#
# Whether run or not, a shell can read the commands, and the commands and options of weir that the page names are
# there.
set -u
build=$(cd "$1" && pwd) source=$(cd "$2" && pwd) page=$(realpath "$3")
gpu=${GPU-}
[ "$gpu" ] || [ -e "$build/lib/weir/sim/libcuda.so.1" ] || {
	echo "the simulated driver is not built"
	exit 77
}
work=$(mktemp -d) || exit 1
end() {
	for left in "$work/root"/*.pid; do
		[ ! -e "$left" ] || kill "$(cat "$left")" 2>/dev/null
	done
	rm -rf "$work"
}
trap end EXIT
mkdir "$work/steps" "$work/root"
# Below those that the kernel gives to clients; tests at the same time have other process ids.
ports=$((1000 + $$ % 2000))
cd "$work/root" || exit 1
for part in examples tests docs models api deploy; do ln -s "$source/$part" .; done
ln -s "$build" build
export PATH="$build/bin:$PATH" LC_ALL=C.UTF-8
[ "$gpu" ] || {
	cp "$build/examples/vecadd" app
	export LD_LIBRARY_PATH="$build/lib/weir/sim"
}
unset WEIR WEIR_SIM
mkdir -m 700 "$work/run"
export XDG_RUNTIME_DIR="$work/run"

# steps/N.run is a command, steps/N.shown what the page shows under it, steps/N.how the fence's second word;
# steps/N.file is a file and steps/N.name its name.
awk -v to="$work/steps/" '
	function begin(what) { n++; base = sprintf("%s%04d", to, n); print how >(base ".how"); close(base ".how") }
	!fence && /^```./ {
		fence = 1; kind = substr($1, 4); how = $2; begin()
		if (kind != "console" && how != "") { print how >(base ".name"); out = base ".file" }
		next
	}
	/^```/ { fence = 0; out = ""; more = 0; next }
	!fence { next }
	kind == "console" && (more || /^\$ /) {
		if (!more) { begin(); out = base ".shown"; sub(/^\$ /, "") }
		print >(base ".run"); more = /\\$/; next
	}
	out != "" { print >out }' "$page"

# One line of a page and one of an output are the same: "…" is any text.  In what is fresh, numbers, units and the
# lengths of bars do not count.
cat >"$work/compare.awk" <<'END'
function plain(s) {
	sub(/\r$/, "", s) # of HTTP
	if (fresh) {
		gsub(/[0-9]+([.,][0-9]+)*(e[-+]?[0-9]+)?/, "0", s)
		gsub(/0 (ns|us|ms|s|B|KiB|MiB|GiB)( |$|,|;|\))/, "0 U ", s)
		gsub(/#+|[-+]0/, "", s)
		gsub(/[ \t]+/, " ", s)
		sub(/ $/, "", s)
	}
	return s
}
function same(shown, line,    parts, n, i, at) {
	n = split(shown, parts, "…")
	for (i = 1; i <= n; i++) {
		if (i > 1)
			sub(/^ +/, "", parts[i])
		if (i < n)
			sub(/ +$/, "", parts[i])
		if (parts[i] == "")
			continue
		at = index(line, parts[i])
		if (!at || (i == 1 && at != 1))
			return 0
		if (i == n && n > 1) { # the end has to be the end
			if (substr(line, length(line) - length(parts[i]) + 1) != parts[i])
				return 0
		}
		line = substr(line, at + length(parts[i]))
		if (n == 1 && line != "")
			return 0
	}
	return 1
}
FNR == NR { output[++lines] = plain($0); next }
/^(…| *)$/ { next }
{
	want = plain($0)
	for (found = at + 1; found <= lines && !same(want, output[found]); found++)
		;
	if (found > lines) {
		print "  not printed: " $0
		bad = 1
	} else {
		at = found
	}
}
END { exit bad }
END

placed() {
	sed "s,127\\.0\\.0\\.1:800,127.0.0.1:$ports,g" "$1"
}
bad=0 ran=0 compared=0
for how in "$work"/steps/*.how; do
	[ -e "$how" ] || break
	step=${how%.how} how=$(cat "$how")
	[ ! -e "$step.name" ] || {
		placed "$step.file" >"$(cat "$step.name")"
		continue
	}
	[ -e "$step.run" ] || continue
	command=$(sed "s,PREFIX,$build,g; s,127\.0\.0\.1:800,127.0.0.1:$ports,g" "$step.run")
	case ${gpu:+gpu:}$how in
	'' | fresh | gpu:needs-gpu) ;;
	gpu:*) continue ;;
	with-onnxruntime)
		[ -e "$build/lib/weir/libonnxruntime.so.1" ] && [ -d "$build/ort" ] || {
			echo "skipped, there is no ONNX Runtime: $command"
			continue
		}
		;;
	with-*)
		command -v "${how#with-}" >/dev/null || {
			echo "skipped, there is no ${how#with-}: $command"
			continue
		}
		;;
	needs-gpu | needs-docker | needs-slurm | needs-mpi | needs-build | needs-network)
		echo "skipped, it needs ${how#needs-}: $command"
		printf '%s\n' "$command" | sh -n && continue
		echo "not a command that a shell can read: $command"
		bad=1
		continue
		;;
	*)
		echo "no such fence: console $how"
		bad=1
		continue
		;;
	esac
	rm -f "$work/output" # a program in the background may still write to that of an earlier command
	case $command in
	export\ *) eval "$command" >"$work/output" 2>&1 ;;
	*) sh -c "$command" >"$work/output" 2>&1 </dev/null ;;
	esac
	code=$?
	ran=$((ran + 1))
	[ $code = 0 ] || {
		echo "exit status $code of: $command"
		cat "$work/output"
		bad=1
	}
	[ -e "$step.shown" ] || continue
	compared=$((compared + $(grep -cvE '^(…| *)$' "$step.shown")))
	awk -v fresh="$([ "$how" = fresh ] && echo 1)" -f "$work/compare.awk" "$work/output" "$step.shown" || {
		echo "by: $command"
		head -n 60 "$work/output"
		bad=1
	}
done

# `weir COMMAND --option` anywhere on the page; `… --option` goes on with the command before.
{
	cat "$work"/steps/*.run 2>/dev/null
	grep -oE '`(weir|…) [^`]*`' "$page" | tr -d '`'
} | tr ';|&' '\n' | sed -nE 's/(^|.*[[:space:](])(weir|…)( [a-z-].*)/\2\3/p' >"$work/named"
command=
while read -r first word rest; do
	case $first$word in
	weir--*) continue ;;
	weir*) command=$word ;;
	*) rest="$word $rest" ;;
	esac
	weir help "$command" >"$work/help" 2>&1 || {
		echo "there is no command $command"
		bad=1
	}
	for option in $(printf '%s\n' "${rest%% -- *}" | sed 's/[>#].*//' | grep -oE -- '--[a-z][a-z-]*'); do
		grep -q -- "$option" "$work/help" || [ "$option" = --help ] || {
			echo "weir $command has no $option"
			bad=1
		}
	done
done <"$work/named"

[ $bad = 0 ] || tail -n 20 ./*.log 2>/dev/null
echo "$ran commands were run, $compared lines compared"
exit $bad
