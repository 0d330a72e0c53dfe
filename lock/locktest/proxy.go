package locktest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"oncegate/lock"
)

// A Proxy stands between a store and its server, and loses replies: the server
// has done what it was asked, and nobody hears of it.
type Proxy struct {
	// Addr is where it listens.
	Addr string

	server   string
	listener net.Listener
	lose     atomic.Int32
	lost     atomic.Int32
	running  sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns map[net.Conn]bool
}

// NewProxy starts a proxy to the server at addr. It ends with the test.
func NewProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), server: addr, listener: l, conns: map[net.Conn]bool{}}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Lose has the proxy take in the next n replies that come, on whatever
// connections, and close those instead of passing them on.
func (p *Proxy) Lose(n int) { p.lose.Add(int32(n)) }

// Lost says how many replies were lost.
func (p *Proxy) Lost() int { return int(p.lost.Load()) }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close()
			continue
		}
		p.keep(client, server)
		p.running.Go(func() {
			defer p.drop(client, server)
			_, _ = io.Copy(server, client) // either end may close at any time
		})
		p.running.Go(func() {
			defer p.drop(client, server)
			p.reply(client, server)
		})
	}
}

// reply passes on what the server says, until a reply is to be lost.
func (p *Proxy) reply(client, server net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if left := p.lose.Load(); left > 0 && p.lose.CompareAndSwap(left, left-1) {
			p.lost.Add(1)
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *Proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
}

func (p *Proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.conns, c)
	}
}

func (p *Proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// LostReplies shows that a store takes a lost reply for what it is. The store
// is reached through the proxy, and its connections are warm. B64: a begin
// whose reply is lost finds its own version and is told to be applied, and so
// is every later change; it never takes its own claim for another's.
func LostReplies(t *testing.T, s Store, p *Proxy) {
	t.Run("B64 replies are lost", func(t *testing.T) {
		at := &place{TB: t, s: s}
		at.read(key("warm"))
		for _, text := range []string{"one", "two", "three", "four", "five"} {
			before := p.Lost()
			p.Lose(1)
			r := at.applied(begin(text))
			if p.Lost() == before {
				t.Fatal("no reply was lost")
			}
			p.Lose(1)
			at.applied(done(r, "x"))
			p.Lose(1)
			if got := at.read(r.Key); got.State != lock.StateDone {
				t.Fatalf("read %s", brief(got))
			}
		}
	})
}
