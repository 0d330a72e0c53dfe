package sqlitelock

// NetworkFileSystem names the network file system that a path lies on, on which
// no store may lie; the empty name is that of a local one. Where the kind can't
// be learned, known is false.
func NetworkFileSystem(path string) (name string, known bool) { return networkFileSystem(path) }
