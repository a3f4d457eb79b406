# docs/reference/serve-routes.md says what api/route.tbl and api/status.tbl say: routes.sh SOURCE [--update].
set -eu
cd "$1"
page=docs/reference/serve-routes.md
rows() { # TABLE AWK_PROGRAM
	awk -F ' *[|] *' "/^#/ || !NF { next } $2" "api/$1"
}
written() {
	cat <<'END'
# Routes of `weir serve`

`sh tests/docs/routes.sh . --update` makes this page from `api/route.tbl` and `api/status.tbl`.
Paths, methods and messages are those of Triton Inference Server. `make install` puts the messages
into `share/weir/inference.proto` and `share/weir/health.proto`, from which `protoc` makes clients.

## REST

You may leave out a part of a path in brackets. `{version}` is a number. HEAD is answered as GET is,
without a body.

| verb | path | |
|---|---|---|
END
	rows route.tbl '
		$3 != "-" {
			sub(" ", ", ", $2)
			print "| " $2 " | `" $3 "` | " ($1 == "NONE" ? "501: " : "") $8 " |"
		}'
	cat <<'END'

A body is a JSON object that has the fields of the message below. The path gives the fields `name`
or `model_name`, and `version`. These bodies differ:

END
	rows route.tbl '
		$7 != "-" {
			key = $7
			array = sub(/\[\]$/, "", key)
			print "- `" $3 "`: " (array ? "an array of the values of `" key "`." : "`" key "` alone.")
		}'
	cat <<'END'

## gRPC

Methods without a service belong to `inference.GRPCInferenceService`.

| method | request | answer | |
|---|---|---|---|
END
	rows route.tbl '
		$4 != "-" {
			print "| `" $4 "` | `" $5 "` | `" $6 "` | " ($1 == "NONE" ? "12: " : "") $8 " |"
		}'
	cat <<'END'

## Codes of failures

An answer over REST with another code than 200 has the body `{"error": "SENTENCE"}`. Over gRPC the
sentence is the message of the status.

| HTTP | gRPC | | |
|---|---|---|---|
END
	rows status.tbl '{ print "| " $4 " | " $3 " | `" $2 "` | " $5 " |" }'
}
[ "${2-}" != --update ] || {
	written >"$page"
	exit 0
}
written | diff -u "$page" - || {
	echo "$page is not what the tables say; sh tests/docs/routes.sh . --update writes it anew"
	exit 1
}
