# The units of deploy/systemd: systemd.sh BUILD SOURCE.  systemd takes them, they are confined, and their commands run.
build=$1 source=$2
. "$(dirname "$0")/../cli/expect.sh"
for unit in "$source"/deploy/systemd/*.service; do
	sed "s#^ExecStart=weir#ExecStart=$build/bin/weir#" "$unit" >"$scratch/$(basename "$unit")"
done
cd "$scratch" || exit 1
sed 's/^ProtectHome/ProtectHomes/' weir-serve.service >misspelt.service
sed '/^Protect/d; /^SystemCall/d; /^CapabilityB/d; /^Restrict/d' weir-serve.service >bare.service
expect 0 'ProtectHomes' systemd-analyze verify --man=no ./misspelt.service
expect 1 'exposure level for bare.service: [3-9]' systemd-analyze security --offline=yes --threshold=20 ./bare.service

# The command of a unit, with the folder that systemd would make.
start() {
	sed -n 's/^ExecStart=//p' "$1.service" >command
	STATE_DIRECTORY=$PWD/state sh -c "exec $(cat command)" >said 2>&1 &
	pid=$!
}
export WEIR_MONITOR_OPTIONS='--listen 127.0.0.1:0' WEIR_SERVE_OPTIONS='--listen 127.0.0.1:0 --sim --drain-delay 1ms'
mkdir state
for unit in weir-monitor weir-serve; do
	expect 0 '^$' systemd-analyze verify --man=no "./$unit.service"
	expect 0 'exposure level' systemd-analyze security --offline=yes --threshold=20 "./$unit.service"
	start $unit
	tries=0
	until grep -q '^ready' said || ls -l /proc/$pid/fd | grep -q socket || [ $((tries += 1)) = 200 ]; do
		sleep 0.1
	done
	kill -TERM $pid
	wait $pid
	expect 0 '^0$' echo $?
	expect 0 '^(ready at .*)?$' cat said
done
finish
