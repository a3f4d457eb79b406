# All that threads and processes share is _Atomic, and each access to it names its order:
# check-atomics.sh ROOT BUILD. Clang knows an access that does not, and gcc's atomic_...() of an
# object that is not _Atomic; without clang only the words are looked at.
cd "$1" || exit 1
gen=$2/gen
case $gen in /*) ;; *) gen=$OLDPWD/$gen ;; esac
bad=0
found() {
	[ -z "$2" ] && return
	printf '%s\n' "$2" | sed "s/\$/: $1/; s/^/  /"
	bad=1
}

sources=$(find src sim tests bench examples -name '*.[ch]' 2>/dev/null)
found 'C11 atomics, not builtins' "$(grep -nEo '__(atomic|sync)_[a-z_]+' $sources /dev/null)"
found 'the order is missing' "$(grep -nE 'atomic_(load|store|exchange|compare_exchange_(weak|strong)|fetch_[a-z]+)\(' \
	$(find src -name '*.[ch]') /dev/null | cut -d: -f1,2)"

clang=$(command -v clang-14 || command -v clang) || {
	echo "  clang is missing: accesses without an order were not looked for"
	exit $bad
}
include="-iquote src -iquote include -iquote api -iquote $gen -iquote ."
for folder in "$gen"/*/; do include="$include -iquote $folder"; done
plain=$(find src -name '*.c' | xargs -P "$(nproc)" -n 20 "$clang" -std=gnu17 -D_GNU_SOURCE -fsyntax-only -Wno-everything \
	-Watomic-implicit-seq-cst -fno-caret-diagnostics -ferror-limit=0 $include 2>&1 |
	grep -E 'implicit use of sequentially|must be a pointer to _Atomic' | cut -d: -f1,2 | sort -u)
found 'an access to what is shared, with an order and an _Atomic type' "$plain"
exit $bad
