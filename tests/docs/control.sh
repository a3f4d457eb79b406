# Proves that commands.sh, options.sh and what tools/check-docs.sh says of pages can fail: control.sh BUILD SOURCE.  A
# page that is right passes; with one thing wrong it does not, and what is wrong is said.
build=$1 source=$2
check=$(dirname "$0")/commands.sh
page=$(mktemp) || exit 1
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$page" "$page.out" "$tree"' EXIT
bad=0

right() {
	cat <<'END'
Some `weir report --json` and its page.

```sh hello.sh
echo "hello 12 ms"
echo "first 1"; echo "second 22 us"
```

```console
$ sh hello.sh
hello 12 ms
…
second … us
```

```console fresh
$ sh hello.sh
hello 4.5 us
second 3 ms
```

```console needs-gpu
$ exit 1
```
END
}

try() { # WHAT-IS-SAID SED-EXPRESSION
	right | sed "$2" >"$page"
	sh "$check" "$build" "$source" "$page" >"$page.out" 2>&1
	code=$?
	[ $code != 77 ] || {
		cat "$page.out"
		exit 77
	}
	if [ -z "$1" ]; then
		[ $code = 0 ] && return
	else
		[ $code != 0 ] && grep -qF -- "$1" "$page.out" && return
	fi
	echo "exit status $code with '$2', where '$1' was to be said:"
	cat "$page.out"
	bad=1
}

try '' ''
try 'not printed: hello 13 ms' 's/^hello 12/hello 13/'
try 'not printed: hello 12' 's/^hello 12 ms/hello 12/'
try 'not printed: second … ns' 's/^second … us/second … ns/'
try 'not printed: bye 4.5 us' 's/^hello 4.5/bye 4.5/'
try 'not printed: hello 12 ms' '/^hello 12 ms/{ h; d; }; /^second …/G'
try 'exit status 127 of: no-such-thing' '0,/^\$ sh hello.sh/s//$ no-such-thing/'
try 'exit status 1 of: exit 1' 's/ needs-gpu//'
GPU=1 try 'exit status 1 of: exit 1' ''
GPU=1 try '' 's/^\$ exit 1/$ exit 0/'
try 'not a command that a shell can read' 's/^\$ exit 1/$ (exit 1/'
try 'no such fence: console needs-luck' 's/needs-gpu/needs-luck/'
try 'weir report has no --jason' 's/--json/--jason/'
try 'there is no command repot' 's/weir report/weir repot/'

mkdir -p "$tree/api" "$tree/docs/reference"
cp "$source/api/command.tbl" "$source/api/option.tbl" "$tree/api/"
sh "$(dirname "$0")/options.sh" "$tree" --update
sed -i 's/| quiet /| silent /' "$tree/api/option.tbl"
sh "$(dirname "$0")/options.sh" "$tree" >"$page.out" 2>&1 && bad=1
grep -q -- '^+.*--silent' "$page.out" || {
	echo "options.sh did not see another option:"
	cat "$page.out"
	bad=1
}
rm "$tree/docs/reference/options.md"

# A header that says another number than the page.
mkdir -p "$tree/include/weir" "$tree/src/client"
cp "$source/docs/reference/sched-api.md" "$tree/docs/reference/"
sed 's/WEIR_ERROR_LIMIT = 10/WEIR_ERROR_LIMIT = 11/' "$source/include/weir/sched.h" >"$tree/include/weir/sched.h"
sh "$(dirname "$0")/sched_api.sh" "$tree" >"$page.out" 2>&1 && bad=1
grep -q '^+.*WEIR_ERROR_LIMIT = 11' "$page.out" || {
	echo "sched_api.sh did not see another number:"
	cat "$page.out"
	bad=1
}
cp "$source/include/weir/sched.h" "$tree/include/weir/"
echo 'int weir_sched_secret(void)' >"$tree/src/client/client.c"
sh "$(dirname "$0")/sched_api.sh" "$tree" >"$page.out" 2>&1 && bad=1
grep -q 'weir_sched_secret() is not declared' "$page.out" || {
	echo "sched_api.sh did not see a function that is not declared:"
	cat "$page.out"
	bad=1
}
rm "$tree/docs/reference/sched-api.md"

lint() { # WHAT-IS-SAID
	sh "$source/tools/check-docs.sh" "$tree" >"$page.out" 2>&1
	code=$?
	[ $code = $((${#1} > 0)) ] && grep -qF -- "$1" "$page.out" && return
	[ $code = 0 ] && [ -z "$1" ] && return
	echo "check-docs.sh says with status $code, where '$1' was to be said:"
	cat "$page.out"
	bad=1
}
mkdir "$tree/docs/howto"
echo '[one](howto/one.md)' >"$tree/docs/README.md"
echo one >"$tree/docs/howto/one.md"
seq 120 >"$tree/README.md"
lint ''
echo 121 >>"$tree/README.md"
lint 'README.md: 121 lines, more than 120'
rm "$tree/README.md"
echo two >"$tree/docs/howto/two.md"
lint 'docs/howto/two.md is not in it'
rm "$tree/docs/howto/two.md"
printf '# One or two\n[here](#one-or-two) [there](../howto/one.md#one-or-three)\n' >"$tree/docs/howto/one.md"
lint 'docs/howto/one.md: there is no heading ../howto/one.md#one-or-three'
echo 'demo: build' >"$tree/Makefile"
printf 'Run `make demo`:\n\n    make dome\n' >"$tree/docs/howto/one.md"
lint 'docs/howto/one.md: there is no make dome'
seq 251 >"$tree/docs/howto/one.md"
lint 'docs/howto/one.md: 251 lines, more than 250'
mkdir "$tree/left"
echo one >"$tree/left/one"
git -C "$tree" init -q && git -C "$tree" add left/one
lint 'the layout has no left/'
exit $bad
