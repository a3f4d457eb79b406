# Nothing in libweir.so calls a function of the program's libc, or takes its address, but the
# functions that tools/hook-symbols.txt names: check-hook-calls.sh ROOT BUILD.  Calls go through
# .plt or through .got; both show in the disassembly, pointers in tables among the relocations.
library=$2/lib/weir/libweir.so
[ -f "$library" ] || exit 0
LC_ALL=C
export LC_ALL
{
	nm -D --undefined-only "$library" | sed 's/^ *[A-Za-z] /undefined /; s/@.*//'
	objdump -d --no-show-raw-insn "$library"
	readelf -rW "$library" | awk '$3 == "R_X86_64_64" { sub(/@.*/, "", $5); print "table", $5 }'
} | awk -v list="$1/tools/hook-symbols.txt" '
	BEGIN {
		while ((getline line < list) > 0) {
			n = split(line, w, " ")
			for (i = 2; i <= n; i++) may[w[1], w[i]] = 1
			if (n == 1) data[w[1]]
		}
	}
	function complain(caller, name) {
		if (seen[caller, name]++) return
		print "  " caller " uses " name ", which tools/hook-symbols.txt does not let it"
		bad = 1
	}
	$1 == "undefined" { outside[$2] = 1; next }
	$1 == "table" { if ($2 in outside) complain("a table", $2); next }
	/^[0-9a-f]+ <.*>:$/ { caller = $2; gsub(/^<|>:$/, "", caller); inside = caller; sub(/\..*/, "", caller); next }
	inside ~ /@plt/ || !/<[^>]+>/ { next }
	{
		name = $0
		sub(/.*</, "", name)
		sub(/[@+>].*/, "", name)
		if (name in outside && !(name in data) && !((name, caller) in may))
			complain(caller, name)
	}
	END { exit bad }'
