# make demo-serve serves a model, asks it, and says what each request waited for: test_demo.sh BUILD.
set -e
said=$(sh "$(dirname "$0")/../../tools/demo-serve.sh" "$1") || { echo "$said"; exit 1; }
echo "$said"
[ "$(echo "$said" | grep -c 'queue=[0-9]* batch=[0-9]* device=[0-9]* total=[0-9]*$')" = 12 ]
# A request that can't be answered in 3 ms is refused, however slow this machine is.
[ "$(echo "$said" | grep -c ' 3 ms  429 ')" = 3 ]
