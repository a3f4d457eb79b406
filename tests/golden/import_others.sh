# Does what import.sh does with every trace of torch.profiler in the folders of WEIR_TRACES, and beside them with
# what torch says of it: import_others.sh BUILD FOLDER, where FOLDER is asked too.
build=$1
found=no bad=0
for folder in $(echo "${WEIR_TRACES-}" | tr : ' ') "$2"; do
	for trace in "$folder"/*.json.gz; do
		[ -e "${trace%.json.gz}.expected.json" ] || continue
		found=yes
		sh "$(dirname "$0")/import.sh" "$build" "$trace" || { echo "$trace"; bad=1; }
	done
done
[ $found = yes ] && exit $bad
echo "no traces of torch.profiler in $2 or the folders of WEIR_TRACES"
exit 77
