# Records examples/batches, prints the report and makes its page: demo.sh BUILD [next].  Without a GPU it runs on the
# simulated driver.  With `next` it says only where the page is and what to try: the end of `make demo`.
set -e
build=$(cd "$1" && pwd)
weir=$build/bin/weir

if [ "${2-}" = next ]; then
	[ -s "$build/demo.html" ]
	cat <<END

The page of the recording, for a browser: $build/demo.html

Try next:
  $weir hints $build/demo.weir
  $weir record --gpu -o app.weir -- YOUR PROGRAM
  $weir help questions
END
	exit 0
fi

how=
ls /dev/nvidia[0-9]* >/dev/null 2>&1 || how='--sim --gpu'

say() {
	printf '\n$ %s\n' "$*"
	"$@"
}

export WEIR_SIM=time=real
say "$weir" record $how -o "$build/demo.weir" -- "$build/examples/batches"
say "$weir" report -n 3 "$build/demo.weir"
say "$weir" html -o "$build/demo.html" "$build/demo.weir"
