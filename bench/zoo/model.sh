# A model from what run.sh brought back: model.sh BUILD FOLDER MODEL
#
# FOLDER has the tables of run.sh, unpacked: zoo, torch, triton, decoder, opt and resnet, each as
# NAME.samples.csv, NAME.side.csv and, of Python, NAME.launches.csv.  FLOPs and bytes are put in, the
# kernels of no row of the zoo (they fill inputs) are left out, and what remains is kept beside MODEL as
# NAME.csv, to be judged by `weir eval`; NAME is the application there, since most are called python.  models/h200.weir-model was made so.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
from=$2
model=$3
into=$(dirname "$model")
device=${WEIR_DEVICE:-H200}

set --
for name in zoo torch triton decoder opt resnet; do
	launches=
	[ -e "$from/$name.launches.csv" ] && launches="--launches $from/$name.launches.csv"
	# shellcheck disable=SC2086
	python3 "$here/join.py" "$from/$name.samples.csv" $launches "$from/$name.side.csv" \
		>"$into/$name.joined.csv"
	python3 - "$into/$name.joined.csv" "$name" >"$into/$name.csv" <<'END'
import csv
import sys

rows = csv.DictReader(open(sys.argv[1], newline=""))
out = csv.DictWriter(sys.stdout, [c for c in rows.fieldnames if c != "family"], lineterminator="\n",
                     extrasaction="ignore")
out.writeheader()
for row in rows:
    if row["op"] not in ("setup", "warmup", "calibrate") and row["contended"] != "1":
        row["app"] = sys.argv[2]
        out.writerow(row)
END
	set -- "$@" "$into/$name.csv"
done
"$build/bin/weir" train --device "$device" -o "$model" "$@"
