package forward

import "net"

// A tunnel is the connection after a 101, as the body of that answer: from here
// on it carries another protocol, both ways, until one side closes it or the
// request's context ends.
type tunnel struct{ x *exchange }

func (t *tunnel) Read(p []byte) (int, error)  { return t.x.conn.in.Read(p) }
func (t *tunnel) Write(p []byte) (int, error) { return t.x.conn.stream.Write(p) }

// CloseWrite passes on that one side has nothing more to say.
func (t *tunnel) CloseWrite() error {
	stream := t.x.conn.stream
	if w, ok := stream.(*wire); ok {
		stream = w.Conn
	}
	if half, ok := stream.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

func (t *tunnel) Close() error { return t.x.Close() }
