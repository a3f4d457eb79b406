# Each header compiles alone: check-headers.sh ROOT BUILD.
cd "$1" || exit 1
gen=$2/gen
case $gen in /*) ;; *) gen=$OLDPWD/$gen ;; esac
bad=0
for header in $(find api include src sim tests -name '*.h' 2>/dev/null); do
	include="-iquote src -iquote include -iquote api -iquote sim -iquote $gen"
	for folder in "$gen"/*/; do include="$include -iquote $folder"; done
	output=$(cc -std=gnu17 -D_GNU_SOURCE -fsyntax-only -Wno-unused $include -x c - 2>&1 <<-END
		#include "$header"
		#include "$header"
		END
	) && continue
	echo "  $header does not stand alone:"
	printf '%s\n' "$output" | grep error: | head -n 3 | sed 's/^/    /'
	bad=1
done
exit $bad
