# What libweir.so takes from the program's libc is on the list of what a guest may use:
# check-guest-symbols.sh ROOT BUILD.
library=$2/lib/weir/libweir.so
[ -f "$library" ] || exit 0
nm -D --undefined-only "$library" | awk '{ sub(/@.*/, "", $2); print $2 }' | sort -u |
	awk -v list="$1/tools/guest-symbols.txt" '
	BEGIN { while ((getline line < list) > 0) { split(line, w, " "); if (w[1] != "#") may[w[1]] = 1 } }
	!($1 in may) { print "  the guest uses " $1 ", which tools/guest-symbols.txt does not allow"; bad = 1 }
	END { exit bad }'
