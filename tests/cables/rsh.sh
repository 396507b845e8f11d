#!/bin/sh
# rsh.sh [OPTIONS] ADDRESS%INTERFACE COMMAND: the remote shell of hosts of lab.py, from the one on which it runs to the neighbour at the other end of
# the interface's cable. The folder ESPALIER_LAB has a file NAME per host with its process, and `cables`: lines HOST INTERFACE HOST INTERFACE. The
# file NAME.refuses has a line that is said instead, and NAME.runs a command that is run instead.
while [ "${1#-}" != "$1" ]; do [ "$1" != -o ] || shift; shift; done
address=${1%%%*} interface=${1##*%} here=$(hostname) host=''
while read -r a a_name b b_name; do
  [ "$a $a_name" != "$here $interface" ] || { host=$b there=$b_name; }
  [ "$b $b_name" != "$here $interface" ] || { host=$a there=$a_name; }
done <"$ESPALIER_LAB/cables"
[ -n "$host" ] || { echo "ssh: $1: no cable" >&2; exit 255; }
[ ! -e "$ESPALIER_LAB/$host.refuses" ] || { cat "$ESPALIER_LAB/$host.refuses" >&2; exit 255; }
shift
[ ! -e "$ESPALIER_LAB/$host.runs" ] || set -- "$(cat "$ESPALIER_LAB/$host.runs")"
enter="nsenter -t $(cat "$ESPALIER_LAB/$host") -n -u -m"
$enter ip -o -6 address show dev "$there" | grep -q " $address/" || { echo "ssh: connect to host $address port 22: No route to host" >&2; exit 255; }
exec $enter sh -c "$*"
