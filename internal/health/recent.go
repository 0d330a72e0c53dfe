package health

import (
	"container/list"
	"net"
	"sync"
)

// mostConnections is far above what probes and scrapes need, and takes some 4 MB.
const mostConnections = 256

// recent is a listener that keeps the last so many connections: one more ends the
// oldest. Anybody in a cluster may reach it, and a flood must take neither the
// memory of the process nor the files that traffic needs. A new one that had to
// wait would let the flood hold up a probe, for which the pod is killed.
type recent struct {
	net.Listener
	most int

	mu   sync.Mutex // guards what follows
	open list.List  // of *guest, the oldest first
}

// Accept implements net.Listener.
func (r *recent) Accept() (net.Conn, error) {
	conn, err := r.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{Conn: conn, among: r}
	r.mu.Lock()
	g.place = r.open.PushBack(g)
	var oldest *guest
	if r.open.Len() > r.most {
		oldest = r.open.Front().Value.(*guest)
	}
	r.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // its own goroutine may have been first
	}
	return g, nil
}

// A guest is a connection that is among the recent ones until it is closed.
type guest struct {
	net.Conn
	among *recent
	place *list.Element // guarded by among's mutex
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.among.mu.Lock()
	g.among.open.Remove(g.place) // does nothing the second time
	g.among.mu.Unlock()
	return g.Conn.Close()
}
