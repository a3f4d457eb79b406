# Records examples/vecadd and prints the report: demo.sh BUILD.  Without a GPU it runs on the
# simulated driver.
set -e
build=$1
sim=
ls /dev/nvidia[0-9]* >/dev/null 2>&1 || sim=--sim

say() {
	printf '\n$ %s\n' "$*"
	"$@"
}

say "$build/bin/weir" record $sim -o "$build/demo.weir" -- "$build/examples/vecadd"
say "$build/bin/weir" report "$build/demo.weir"
