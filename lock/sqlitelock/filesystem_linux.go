package sqlitelock

import "golang.org/x/sys/unix"

// networkFileSystem names the network file system that path lies on; the empty
// name is that of a local one.
func networkFileSystem(path string) (name string, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return "", false
	}
	switch uint32(s.Type) {
	case unix.NFS_SUPER_MAGIC:
		return "NFS", true
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB", true
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph", true
	case unix.V9FS_MAGIC:
		return "9P", true
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "AFS", true
	}
	return "", true
}
