#!/usr/bin/env bash
# A SLURM of one node with one pretended GPU, for tests: `one_node_slurm.sh start | stop | status`, as root on Debian or Ubuntu.
# All of it lies in $SLURM_TEST_DIR, but for the packages and three links in /etc/slurm: a variable would not do, because
# snakemake's job steps clear SLURM_CONF. Daemons are started by hand, without systemd, and stopped by the pid that they
# wrote down.
set -euo pipefail
dir=${SLURM_TEST_DIR:?name the folder that this SLURM shall lie in}
run=$dir/run log=$dir/log
etc=/etc/slurm

alive() { [ -s "$run/$1.pid" ] && kill -0 "$(cat "$run/$1.pid")" 2>/dev/null; }

wait_for() { # what, seconds, command
  local what=$1 end=$((SECONDS + $2))
  shift 2
  while [ "$SECONDS" -lt "$end" ]; do
    "$@" >"$log/wait.log" 2>&1 && return 0
    sleep 0.2
  done
  echo "$what did not start. The last lines of its logs:" >&2
  tail -n 5 "$log"/*.log >&2
  return 1
}

stop_daemon() {
  if alive "$1"; then
    local pid
    pid=$(cat "$run/$1.pid")
    kill -TERM "$pid"
    for _ in $(seq 100); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
  fi
  rm -f "$run/$1.pid"
}

install_packages() {
  command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v munged >/dev/null && return
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >"$log/apt.log" 2>&1
  apt-get install -y -q --no-install-recommends slurm-wlm munge >>"$log/apt.log" 2>&1
}

link_configuration() {
  mkdir -p "$etc"
  for file in slurm.conf gres.conf cgroup.conf; do
    if [ -e "$etc/$file" ] && [ "$(readlink "$etc/$file")" != "$dir/$file" ]; then
      echo "$etc/$file: this machine has a SLURM of its own. Run the test on another one." >&2
      exit 3
    fi
    ln -sf "$dir/$file" "$etc/$file"
  done
}

unlink_configuration() {
  for file in slurm.conf gres.conf cgroup.conf; do
    [ "$(readlink "$etc/$file")" != "$dir/$file" ] || rm "$etc/$file"
  done
}

write_configuration() {
  local host cores memory
  host=$(hostname -s)
  cores=$(nproc)
  memory=$(slurmd -C | sed -n 's/.*RealMemory=\([0-9]*\).*/\1/p')
  # Cores and memory may be pretended (config_overrides); nothing here enforces them.
  cat >"$dir/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$run/munge.socket
CredType=cred/munge
SlurmctldPidFile=$run/slurmctld.pid
SlurmdPidFile=$run/slurmd.pid
SlurmctldLogFile=$log/slurmctld.log
SlurmdLogFile=$log/slurmd.log
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
# Finished jobs can be looked at for an hour: there is no accounting database.
MinJobAge=3600
KillWait=5
GresTypes=gpu
AccountingStorageType=accounting_storage/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$((cores < 2 ? 2 : cores)) RealMemory=$((memory < 16000 ? 16000 : memory)) Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=02:00:00 State=UP
PartitionName=gpu Nodes=$host Default=NO MaxTime=02:00:00 State=UP
CONF
  echo 'Name=gpu File=/dev/null' >"$dir/gres.conf"
  printf '%s\n' CgroupAutomount=no ConstrainCores=no ConstrainRAMSpace=no ConstrainDevices=no >"$dir/cgroup.conf"
}

start_munge() { # with a key and a socket of its own: the machine's munge is left alone
  [ -s "$dir/munge.key" ] || dd if=/dev/urandom of="$dir/munge.key" bs=1 count=128 status=none
  chmod 600 "$dir/munge.key"
  rm -f "$run"/munge.socket*
  munged --force --key-file="$dir/munge.key" --socket="$run/munge.socket" --pid-file="$run/munged.pid" \
    --log-file="$log/munged.log" --seed-file="$dir/munge.seed"
  wait_for munged 15 timeout 5 munge -n --socket="$run/munge.socket"
}

node_is_up() { sinfo -h -N -o %T | grep -Eq '^(idle|mixed|allocated)$'; }

start() {
  mkdir -p "$run" "$log" "$dir/state" "$dir/spool"
  install_packages
  write_configuration
  link_configuration
  alive munged || start_munge
  alive slurmctld || slurmctld
  wait_for slurmctld 20 timeout 5 scontrol ping
  alive slurmd || slurmd
  wait_for slurmd 30 node_is_up
}

stop() {
  if alive slurmctld; then
    scancel --user="$(id -un)" 2>/dev/null || true
    sleep 1
  fi
  for daemon in slurmd slurmctld munged; do stop_daemon "$daemon"; done
  unlink_configuration
}

case "${1:-}" in
  start) start ;;
  stop) stop ;;
  status) for daemon in munged slurmctld slurmd; do alive "$daemon" && echo "$daemon runs" || echo "$daemon is down"; done ;;
  *) echo "usage: $0 start | stop | status" >&2; exit 2 ;;
esac
