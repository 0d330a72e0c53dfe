#!/bin/bash
# Becomes a command that sees nothing but an image's files, as a container with a
# read-only root and a user without rights does. Runs in a mount namespace of its
# own: contain.sh ROOT CONFIG STATE COMMAND...
set -euo pipefail

root=$1 config=$2 state=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
# What a container runtime brings along.
mount --bind "$config" "$root/etc/oncegate"
mount --bind /etc/hosts "$root/etc/hosts"
mount -o remount,bind,ro "$root"
mount --bind "$state" "$root/var/lib/oncegate"
exec chroot --userspec=65532:65532 --groups= "$root" "$@"
