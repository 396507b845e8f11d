#!/bin/sh
# rsh.sh [OPTIONS] HOST COMMAND...: the remote shell into a host of hosts.py, whose state folder is ESPALIER_LAB. With ESPALIER_LAB_CALLER it
# tells the command from which address it was called, as sshd does.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
process=$(cat "$ESPALIER_LAB/$host") || exit 255
[ -z "${ESPALIER_LAB_CALLER-}" ] || export SSH_CONNECTION="$ESPALIER_LAB_CALLER 50000 $ESPALIER_LAB_CALLER 22"
exec nsenter -t "$process" -n -u -m sh -c "$*"
