# docs/reference/serve-metrics.md is what api/serve_metric.tbl says: serve_metrics.sh SOURCE [--update].
set -eu
cd "$1"
page=docs/reference/serve-metrics.md
written() {
	cat <<'END'
# Metrics of `weir serve`

`sh tests/docs/serve_metrics.sh . --update` makes this page from `api/serve_metric.tbl`.

`GET /metrics` answers in Prometheus' text format. Names that begin with `nv_` are Triton's, with
their labels and units.

## Each version of a model

Each value has the labels `model` and `version`.

| name | type | further label | |
|---|---|---|---|
END
	awk -F ' *[|] *' '
		/^#/ || !NF || $3 ~ /^server/ { next }
		{ print "| `" $1 "` | " $2 " | " ($4 == "-" ? "" : "`" $4 "`") " | " $5 " |" }' api/serve_metric.tbl
	cat <<'END'

## The server

| name | type | |
|---|---|---|
END
	awk -F ' *[|] *' '
		!/^#/ && $3 ~ /^server/ { print "| `" $1 "` | " $2 " | " $5 " |" }' api/serve_metric.tbl
}
[ "${2-}" != --update ] || {
	written >"$page"
	exit 0
}
written | diff -u "$page" - || {
	echo "$page is not what the table says; sh tests/docs/serve_metrics.sh . --update writes it anew"
	exit 1
}
# It must be able to fail.
! written | sed 's/nv_inference_count/nv_inference_counts/' | diff -q "$page" - >/dev/null
