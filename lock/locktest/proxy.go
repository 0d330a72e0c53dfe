package locktest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
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

	mu      sync.Mutex // guards what follows
	conns   map[net.Conn]bool
	holding bool          // replies are held that come now
	held    int           // connections on which one is
	release chan struct{} // closed when they are let go
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

// Hold has the proxy keep back all replies, until Pass.
func (p *Proxy) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding, p.release = true, make(chan struct{})
}

// Held says on how many connections a reply is kept back.
func (p *Proxy) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Pass lets replies through again on all connections where none is kept back.
func (p *Proxy) Pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding = false
}

// Release lets through what was kept back.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding, p.held = false, 0
	if p.release != nil {
		close(p.release)
		p.release = nil
	}
}

// wait keeps back a reply, where that is asked for.
func (p *Proxy) wait() {
	p.mu.Lock()
	release := p.release
	if p.holding {
		p.held++
	} else {
		release = nil
	}
	p.mu.Unlock()
	if release != nil {
		<-release
	}
}

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
		p.wait()
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
	p.Release()
	p.mu.Lock()
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}
