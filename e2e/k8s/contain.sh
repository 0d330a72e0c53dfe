#!/bin/bash
# Becomes a command that sees nothing but an image's files and what is mounted
# there, as a container with a read-only root and a user without rights does. Runs
# in a mount namespace of its own:
#
#   contain.sh ROOT USER FROM=TO[=ro]... -- COMMAND...
set -euo pipefail

root=$1 user=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
while [[ $1 != -- ]]; do
	IFS== read -r from to how <<<"$1="
	mount --bind "$from" "$root$to"
	[[ $how != ro* ]] || mount -o remount,bind,ro "$root$to"
	shift
done
shift
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user" --groups= "$root" "$@"
