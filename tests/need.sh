# Runs a test that needs tools which may be missing: need.sh 'TOOL...' COMMAND.  Without one of them the test is
# skipped, which is exit status 77; the last line that a skipped test prints is the reason.  It is asked when the
# test runs, so that the list of tests is the same on every machine, and what is installed later is used.
PATH=$PATH:/usr/local/cuda/bin
tools=$1
shift
for tool in $tools; do
	command -v "$tool" >/dev/null && continue
	echo "$tool is not installed"
	exit 77
done
exec "$@"
