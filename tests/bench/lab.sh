#!/bin/bash
# The laboratory: hosts as network namespaces around one bridge, each with a shaped full-duplex link. Root only.
#   lab.sh up HOSTS MBIT            hosts esplab0 .. with addresses 10.79.0.1 ..; MBIT 0: not shaped
#   lab.sh down                     removes them
#   lab.sh on HOST COMMAND...       runs COMMAND on a host, e.g. `lab.sh on 0 ping 10.79.0.2`
# Each link is shaped in both directions by a token bucket (burst 10,000 bytes), MTU 9000. Queues hold 4 MB at the
# host and 1 MB at the switch's port. The ARP entries of all neighbours are set beforehand, so that no ARP runs during
# a measurement. TCP has the congestion control cubic, whatever the default of this machine is: with bbr, two hosts that
# exchange long messages use 60 to 90 % of their links, over raw sockets, too.
# `lab.sh rsh [options] HOSTNAME COMMAND...` is the remote shell that mpirun starts its daemons with.
# Names are of one laboratory per machine, unless ESPALIER_LAB_NAME has another word for 'esplab'.
set -euo pipefail
name=${ESPALIER_LAB_NAME:-esplab}
state=${ESPALIER_LAB:-${TMPDIR:-/tmp}/espalier-lab}

mac() { printf '02:79:00:00:00:%02x' "$(($1 + 1))"; }

up() {
  local hosts=$1 mbit=$2 i j
  mkdir -p "$state"
  ip netns add "$name-switch"
  ip -n "$name-switch" link add switch type bridge
  ip -n "$name-switch" link set switch mtu 9000 up
  echo '127.0.0.1 localhost' >"$state/hosts"
  : >"$state/hostfile"
  for ((i = 0; i < hosts; i++)); do
    ip netns add "$name$i"
    ip -n "$name$i" link set lo up
    ip link add eth0 netns "$name$i" address "$(mac "$i")" mtu 9000 type veth peer name "port$i" netns "$name-switch"
    ip -n "$name$i" link set eth0 addrgenmode none
    ip -n "$name$i" address add "10.79.0.$((i + 1))/24" dev eth0
    ip -n "$name$i" link set eth0 up
    ip -n "$name$i" route replace 10.79.0.0/24 dev eth0 src "10.79.0.$((i + 1))" congctl cubic
    ip -n "$name-switch" link set "port$i" mtu 9000 addrgenmode none master switch up
    if [ "$mbit" != 0 ]; then
      tc -n "$name$i" qdisc add dev eth0 root tbf rate "${mbit}mbit" burst 10000 limit 4000000
      tc -n "$name-switch" qdisc add dev "port$i" root tbf rate "${mbit}mbit" burst 10000 limit 1000000
    fi
    echo "10.79.0.$((i + 1)) $name$i" >>"$state/hosts"
    echo "$name$i slots=1" >>"$state/hostfile"
  done
  for ((i = 0; i < hosts; i++)); do
    for ((j = 0; j < hosts; j++)); do
      [ "$i" = "$j" ] || ip -n "$name$i" neighbour replace "10.79.0.$((j + 1))" lladdr "$(mac "$j")" dev eth0 nud permanent
    done
  done
}

down() {
  local space
  for space in $(ip netns list | sed -n "s/^\\($name[0-9]*\\|$name-switch\\)\\( .*\\)\\?\$/\\1/p"); do
    ip netns delete "$space"
  done
  rm -rf "$state"
}

# `ip netns exec` creates a mount namespace: the hosts file is replaced only there.
on() {
  local space=$1
  shift
  exec ip netns exec "$space" unshare --uts bash -c \
    'name=$1 hosts=$2; shift 2; hostname "$name"; mount --bind "$hosts" /etc/hosts; exec "$@"' _ "$space" "$state/hosts" "$@"
}

case "${1-}" in
  up) up "$2" "$3" ;;
  down) down ;;
  on) host=$2; shift 2; on "$name$host" "$@" ;;
  rsh)
    shift
    while [[ $1 == -* ]]; do shift; done
    host=$1; shift
    on "$host" bash -c "$*" ;;
  *) echo "lab.sh: say 'up HOSTS MBIT', 'down' or 'on HOST COMMAND...'" >&2; exit 2 ;;
esac
