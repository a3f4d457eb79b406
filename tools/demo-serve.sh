# Serves a model, asks it with curl, and prints what each request waited for: demo-serve.sh BUILD.  The model is one that
# computes nothing and takes 4 ms and 1 ms a row, so that the demo needs no download.
set -e
build=$(cd "$1" && pwd)
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$scratch"' EXIT

if ! command -v curl >/dev/null; then
	echo "demo-serve: curl is not installed" >&2
	exit 3
fi
mkdir -p "$scratch/models/pictures/1"
cat >"$scratch/models/pictures/config.pbtxt" <<'END'
backend: "synthetic"
max_batch_size: 16
END
cat >"$scratch/models/pictures/1/model.json" <<'END'
{ "inputs": [{ "name": "X", "datatype": "FP32", "shape": [-1, 4] }],
  "outputs": [{ "name": "Y", "datatype": "FP32", "shape": [-1, 4] }], "us": 4000, "us_per_row": 1000 }
END

printf '$ weir serve --listen=127.0.0.1:0 models\n'
"$build/bin/weir" serve --listen=127.0.0.1:0 --drain-delay=0 "$scratch/models" >"$scratch/said" 2>&1 &
server=$!
# It says where it listens once its models are warm.
until to=$(grep -o 'http://[0-9.:]*' "$scratch/said"); do
	kill -0 "$server" 2>/dev/null || { cat "$scratch/said" >&2; exit 1; }
	sleep .05
done
cat "$scratch/said"

asked='{"inputs":[{"name":"X","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]}'
printf "\n\$ curl -d '%s' %s\n" "$asked" "$to/v2/models/pictures/infer"
curl -s -S -d "$asked" "$to/v2/models/pictures/infer"

# One client with its deadline: what the answer was, and what the request waited for.
client() {
	curl -s -S -D "$scratch/head.$1" -o "$scratch/body.$1" -H 'Weir-Time: 1' -H "Weir-Deadline-Us: $2" -d "$asked" \
		"$to/v2/models/pictures/infer"
	printf '  %2d  %5s ms  %s  %s\n' "$1" "$(($2 / 1000))" "$(sed -n '1s/[^ ]* \([0-9]*\).*/\1/p' "$scratch/head.$1")" \
		"$(tr -d '\r' <"$scratch/head.$1" | sed -n 's/^[Ww]eir-[Tt]ime: //p')" >"$scratch/line.$1"
}

printf '\nTwelve clients at once, each with a deadline. The answers, and what each request waited for in microseconds:\n'
printf '      within    code\n'
waiting=
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	[ $((i % 4)) = 0 ] && within=3000 || within=1000000
	client $i $within &
	waiting="$waiting $!"
done
wait $waiting
cat "$scratch"/line.? "$scratch"/line.??
printf 'A request with 3 ms is refused at once (429): one row takes 5 ms, so no answer could come in time.\n'

kill -TERM "$server"
wait "$server"
server=
