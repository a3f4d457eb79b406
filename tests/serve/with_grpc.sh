# Runs a test with a Python that has gRPC, and the messages of the server compiled for it: with_grpc.sh PROTO_FOLDER TO TEST.
# 77 where there is none.
for python in python3 /usr/bin/python3; do
	"$python" -c 'import grpc, google.protobuf' 2>/dev/null || continue
	mkdir -p "$2" && protoc --python_out="$2" -I"$1" "$1"/inference.proto "$1"/health.proto || exit 1
	PYTHONPATH=$2 exec "$python" -B "$3"
done
echo "no Python here has grpc (Debian: python3-grpcio)"
exit 77
