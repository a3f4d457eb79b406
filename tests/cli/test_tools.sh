# People see this of the tools around the tests: a test whose tool is missing is skipped by name,
# and the summary says why; a fresh machine that can't be made says why.
weir=$1
. "$(dirname "$0")/expect.sh"
source=$2

expect 77 '^no-such-tool is not installed$' sh "$source/tests/need.sh" 'sh no-such-tool' echo ran
expect 0 '^ran$' sh "$source/tests/need.sh" 'sh cat' echo ran

mkdir "$scratch/build" "$scratch/build-asan"
cat >"$scratch/build/CTestTestfile.cmake" <<END
add_test(good true)
add_test(silent sh -c "exit 77")
add_test(lacking sh "$source/tests/need.sh" no-such-tool true)
add_test(strange sh -c "echo first; echo 'no <a> & \"b\"'; echo; exit 77")
set_tests_properties(silent lacking strange PROPERTIES SKIP_RETURN_CODE 77)
END
results=$scratch/build/tests.xml
ctest --test-dir "$scratch/build" --output-junit tests.xml >/dev/null
expect 0 '^1 passed, 0 failed, 3 skipped$' sh "$source/tools/summary.sh" "$results"
expect 0 '^skipped: silent \(it does not say why\), lacking \(no-such-tool is not installed\), strange \(no <a> & "b"\)$' \
	sh "$source/tools/summary.sh" "$results"

cat >"$scratch/build-asan/CTestTestfile.cmake" <<END
add_test(good true)
add_test(bad false)
add_test(gone no-such-program)
END
ctest --test-dir "$scratch/build-asan" --output-junit tests.xml >/dev/null 2>&1
asan=$scratch/build-asan/tests.xml
expect 1 '^failed: build-asan/bad, build-asan/gone$' sh "$source/tools/summary.sh" "$asan" "$results"
expect 1 '^2 passed, 2 failed, 3 skipped$' sh "$source/tools/summary.sh" "$asan" "$results"
expect 1 'no results in .*build-tsan/tests.xml' sh "$source/tools/summary.sh" "$scratch/build-tsan/tests.xml" "$results"

# make demo ends with where the page is and with three commands, of which those that need no program run as they are.
built=$(cd "$(dirname "$weir")/.." && pwd)
mkdir "$scratch/demo"
for part in bin lib examples; do ln -s "$built/$part" "$scratch/demo/$part"; done
expect 0 'kernels run' sh "$source/tools/demo.sh" "$scratch/demo"
sh "$source/tools/demo.sh" "$scratch/demo" next >"$scratch/next"
page=$(sed -n 's/^The page.*: //p' "$scratch/next")
expect 0 '<!doctype html>' head -c 20 "$page"
sed -n 's/^  //p' "$scratch/next" >"$scratch/commands"
expect 0 '^3 ' wc -l "$scratch/commands"
grep -v YOUR "$scratch/commands" | while read -r command; do
	$command >/dev/null || echo "exit $?: $command"
done >"$scratch/failed"
expect 1 '^$' grep . "$scratch/failed"
grep -q 'demo.sh $(BUILD) next' "$source/Makefile" || expect 0 'make demo says what to try' false

# The table of sharing, of programs that say what they are told to: it ends with what the numbers mean, or that they
# mean nothing.
mkdir -p "$scratch/two/bin" "$scratch/two/bench"
cat >"$scratch/two/bin/weir" <<'END'
#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
shared=1 exec "$@"
END
cat >"$scratch/two/bench/bench-load" <<'END'
#!/bin/sh
p50=200.0 rate=1000
[ -z "$shared" ] || { p50=2500.0 rate=800; }
[ "$1" = latency ] || exec echo "{\"rate_s\": $rate}"
echo "{\"p50_us\": $p50, \"p95_us\": $TAIL.5}"
END
chmod +x "$scratch/two/bin/weir" "$scratch/two/bench/bench-load"
expect 0 '^alone +200.0 +280.5 +1000$' env TAIL=280 sh "$source/tools/demo-share.sh" "$scratch/two"
expect 0 'takes 1.0 times as long as alone with time slices, and 12.5 times with weir run' \
	env TAIL=280 sh "$source/tools/demo-share.sh" "$scratch/two"
expect 0 'keeps 80 % of its rate' env TAIL=280 sh "$source/tools/demo-share.sh" "$scratch/two"
expect 0 'too busy to tell: alone, one burst in twenty took 1.6 times' env TAIL=310 sh "$source/tools/demo-share.sh" "$scratch/two"

# make demo builds no test, and what it builds knows them all.
expect 1 '^$' sh -c "ninja -C '$built' -t commands demo | grep -E '/tests/(unit|cli|golden|fuzz|hostile|page)/'"

someone=
[ "$(id -u)" != 0 ] || someone='setpriv --reuid 65534 --regid 65534 --clear-groups'
chmod 755 "$scratch"
cp "$source/tools/fresh.sh" "$source/tools/debian.sh" "$scratch"
expect 3 "can't be made here: only root" $someone sh "$scratch/fresh.sh" "$scratch/fresh"
finish
