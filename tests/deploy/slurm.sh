# Debian's Slurm runs tasks that are recorded: slurm.sh BUILD SOURCE.  A controller, a node and munge run here, with
# processes, a network and a host name of their own, which end with this script.
build=$1 source=$2
[ "$(id -u)" = 0 ] || { echo "only root can start Slurm's daemons"; exit 77; }
if [ "${3-}" != inside ]; then
	unshare -n true 2>/dev/null || { echo "no namespaces can be made here"; exit 77; }
	exec unshare -mnupf --kill-child --mount-proc sh "$0" "$1" "$2" inside
fi
. "$(dirname "$0")/../cli/expect.sh"
chmod 755 "$scratch" && cd "$scratch" || exit 1
# Slurm looks names up as if a network of 127.0.0.1 alone were none.
echo '10.0.0.1 node' >hosts
ip link set lo up && ip addr add 10.0.0.1/32 dev lo && hostname node && mount --bind hosts /etc/hosts || exit 1
mkdir -p tree/lib/weir/slurm out state spool tmp
ln -s "$build"/lib/weir/* tree/lib/weir
cp "$source"/deploy/slurm/* tree/lib/weir/slurm
export PATH="$PATH:/usr/sbin" SLURM_CONF="$scratch/slurm.conf" TMPDIR="$scratch/tmp" LD_LIBRARY_PATH="$build/lib/weir/sim"

head -c 1024 /dev/urandom >key && chmod 400 key
munged --force --socket="$scratch/socket" --key-file=key --seed-file=seed --pid-file="$scratch/munged.pid" \
	--log-file="$scratch/munged.log" || exit 1
cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=node
AuthInfo=socket=$scratch/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
SlurmctldLogFile=$scratch/slurmctld.log
SlurmdLogFile=$scratch/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
ReturnToService=2
NodeName=node CPUs=2 State=UNKNOWN
PartitionName=all Nodes=node Default=YES OverSubscribe=FORCE:4
END
slurmctld && slurmd || { cat slurmctld.log slurmd.log; exit 1; }
tries=0
until sinfo -h -o %T | grep -q idle || [ $((tries += 1)) = 200 ]; do
	sleep 0.1
done

launches() {
	"$build/bin/weir" report --json "$1" | grep -o '"launches": *240'
}
cd out || exit 1
expect 0 '' srun -n 1 true
expect 0 '' env WEIR_RECORD= ../tree/lib/weir/slurm/weir-srun -n 2 "$build/examples/vecadd"
set -- *.weir
expect 0 '^2$' echo $#
for trace; do
	expect 0 launches launches "$trace"
done
expect 0 '^job[0-9]+\.0-rank0\.weir job[0-9]+\.0-rank1\.weir$' echo "$@"
rm -f *.weir
# The exit status is the program's, also where it makes no call.
expect 7 '' ../tree/lib/weir/slurm/weir-srun -n 1 sh -c 'exit 7'

# Set up for the whole cluster: for who asks, and for nobody else.
echo "TaskProlog=$scratch/tree/lib/weir/slurm/task-prolog
TaskEpilog=$scratch/tree/lib/weir/slurm/task-epilog" >>../slurm.conf
kill "$(cat ../slurmd.pid)"
tries=0
while [ -e ../slurmd.pid ] && [ $((tries += 1)) -lt 200 ]; do
	sleep 0.1
done
slurmd
expect 0 '' srun -n 1 "$build/examples/vecadd"
expect 0 '^\*.weir$' echo *.weir
expect 0 '' env WEIR_RECORD=gpu srun -n 1 "$build/examples/vecadd"
expect 0 launches launches job*.weir
expect 0 '"device_kernels": *240' "$build/bin/weir" report --json job*.weir
expect 0 '^$' ls ../tmp
[ "$failures" = 0 ] || tail -n 20 ../slurmctld.log ../slurmd.log
finish
