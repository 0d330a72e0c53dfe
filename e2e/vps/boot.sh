#!/bin/bash
# Runs as the first process of new namespaces, and becomes systemd. Its root is
# this machine's own, under a layer in memory that takes every change: what is
# installed or configured here is gone with the last process. $1 is an empty
# folder.
set -euo pipefail

mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/changes" "$1/work" "$1/root"
root=$1/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/changes,workdir=$1/work" "$root"

mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"

ip link set lo up
echo shop >"$root/etc/hostname"
tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
rm -f "$root/usr/sbin/policy-rc.d"

# Only what the test asks for is started: no timers, none of the machine's own
# services.
units=$root/etc/systemd/system
rm -rf "$units"/*.wants
ln -sf /dev/null "$units/timers.target"
ln -sf /dev/null "$units/systemd-firstboot.service"
ln -sf /dev/null "$units/systemd-timesyncd.service"
printf '[Unit]\nRequires=basic.target\nAfter=basic.target\nAllowIsolate=yes\n' >"$units/server.target"

# The old root stays reachable for nobody.
mkdir "$root/mnt/old"
cd "$root"
pivot_root . mnt/old
umount -l /mnt/old
rmdir /mnt/old
# As systemd has it where it believes to be on a machine of its own: the mounts
# that it makes for a service are to reach that service.
mount --make-rshared /
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
	/lib/systemd/systemd --unit=server.target --log-target=console --show-status=no
