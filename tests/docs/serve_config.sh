# docs/reference/serve-config.md is what api/config.tbl says: serve_config.sh SOURCE [--update].
set -eu
cd "$1"
page=docs/reference/serve-config.md
written() {
	cat <<'END'
# Fields of `config.pbtxt`

`sh tests/docs/serve_config.sh . --update` makes this page from `api/config.tbl`.

A model's folder may have a file `config.pbtxt` in protobuf's text format, as Triton has it. A load
request may bring the same fields as JSON, with these names or in lowerCamelCase. Weir completes
what the file leaves out from the model itself, and refuses what contradicts the model.

| word | what Weir makes of the field |
|---|---|
| used | it decides how the model is served |
| kept | `GET /v2/models/MODEL/config` shows it, and nothing else depends on it |
| ignored | the same, and the log has a warning, unless the value is the default |
| refused | the model is not loaded, and the message names file and line, unless the value is the default |

A name that stands nowhere here is an error. Each map has entries with a `key` and a `value`.
`TYPE_FP32` is an example of a data type. Whole numbers are at most 9223372036854775807.
END
	awk '
		function show(m,    heading, i, n, part) {
			if (shown[m]++)
				return
			heading = "`" where[m] "`"
			gsub(/, /, "` and `", heading)
			if (rows[m] != "")
				printf "\n## %s\n\n| field | type | | |\n|---|---|---|---|\n%s", \
					m == "ModelConfig" ? "The model" : heading, rows[m]
			n = split(parts[m], part, " ")
			for (i = 1; i <= n; i++)
				show(part[i])
		}
		BEGIN { FS = "[ \t]+[|][ \t]*" }
		/^#/ || !NF { next }
		/^enum / { values[substr($1, 6)] = $2; next }
		/^message / { m = substr($1, 9); where[m] = $3; next }
		{
			sub(/[ \t]+$/, "")
			type = $2 == "shape" ? "int64" : $2 == "dtype" ? "data type" : \
				$2 in where || $2 == "refused" ? "message" : $2
			if ($2 in values) {
				type = "`" values[$2] "`"
				gsub(/ /, "`, `", type)
			}
			many = $3 == "many" ? "list of " : $3 == "map" ? "map to " : \
				$3 == "levels" ? "map of numbers to " : ""
			rows[m] = rows[m] "| `" (m == "Weir" ? "weir." : "") $1 "` | " many type " | " \
				(($2 in where) && $5 == "-" && $4 != "ignored" ? "below" : $4) " | " $6 " |\n"
			parts[m] = parts[m] ($2 in where ? $2 " " : "")
		}
		END {
			where["Weir"] = "weir.*"
			show("ModelConfig")
			show("Weir")
		}' api/config.tbl
}
[ "${2-}" != --update ] || {
	written >"$page"
	exit 0
}
written | diff -u "$page" - || {
	echo "$page is not what the table says; sh tests/docs/serve_config.sh . --update writes it anew"
	exit 1
}
# It must be able to fail.
! written | sed 's/TYPE_FP32/TYPE_FP23/' | diff -q "$page" - >/dev/null
