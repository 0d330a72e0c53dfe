//go:build !unix

package forward

// quiet is false where a connection can't be looked at without waiting: there
// each request has a connection of its own.
func (c *conn) quiet() bool { return false }
