# libweir.so takes from the program's libc only functions on the hook's list: check-hook-symbols.sh
# ROOT BUILD.
library=$2/lib/weir/libweir.so
[ -f "$library" ] || exit 0
nm -D --undefined-only "$library" | awk '{ sub(/@.*/, "", $2); print $2 }' | sort -u |
	awk -v list="$1/tools/hook-symbols.txt" '
	BEGIN { while ((getline line < list) > 0) { split(line, w, " "); if (w[1] != "#") may[w[1]] = 1 } }
	!($1 in may) { print "  the hook uses " $1 ", which tools/hook-symbols.txt does not allow"; bad = 1 }
	END { exit bad }'
