package main

import (
	"bytes"
	"container/list"
	"errors"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// What memory is for, where it is limited: this much for the process itself, what
// may be in hand half as much again (a body that grows is copied), and so much for
// each connection: a head that is being sent, or an answer that is streamed.
const (
	ownRoom        = 32 << 20
	connectionRoom = 80 << 10
)

// fitting returns how many of so many connections the memory has room for, and
// whether it has any beside what may be in hand.
func fitting(connections int, memory, inHand int64) (n int, fits bool) {
	const least = 64
	if memory == math.MaxInt64 {
		return connections, true // no limit
	}
	rest := (memory - inHand - inHand/2 - ownRoom) / connectionRoom
	return int(min(max(rest, least), int64(connections))), rest >= least
}

// A crowd is a listener whose connections are so many at most. Where all places
// are taken, the connection that has been idle longest is closed, which loses no
// request but one that is just being sent; where none is idle, a new one waits for a
// place. It learns from http.Server's ConnState which are idle.
type crowd struct {
	net.Listener
	places chan struct{} // holds as many as there are connections

	closeOnce sync.Once
	closed    chan struct{}

	mu      sync.Mutex // guards what follows
	idle    list.List  // of *guest, the longest idle first
	waiting bool       // for a place
}

func newCrowd(l net.Listener, most int) *crowd {
	return &crowd{Listener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case c.places <- struct{}{}:
		return &guest{Conn: conn, crowd: c}, nil
	default:
	}
	c.makeRoom()
	select {
	case c.places <- struct{}{}:
		c.mu.Lock()
		c.waiting = false
		c.mu.Unlock()
		return &guest{Conn: conn, crowd: c}, nil
	case <-c.closed:
		conn.Close()
		return nil, net.ErrClosed
	}
}

// makeRoom closes the longest idle connection, or else the next that becomes idle.
func (c *crowd) makeRoom() {
	c.mu.Lock()
	var longest *guest
	if first := c.idle.Front(); first != nil {
		longest = c.idle.Remove(first).(*guest)
		longest.place = nil
	}
	c.waiting = longest == nil
	c.mu.Unlock()
	if longest != nil {
		longest.Close()
	}
}

// Close implements net.Listener. The server closes it too, when Accept ends.
func (c *crowd) Close() (err error) {
	c.closeOnce.Do(func() {
		close(c.closed)
		err = c.Listener.Close()
	})
	return err
}

// changed is http.Server's ConnState.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	g, ok := conn.(*guest)
	if !ok {
		return
	}
	switch state {
	case http.StateNew, http.StateIdle:
		g.lines.Store(0)
	default:
		g.lines.Store(noHead)
	}
	c.mu.Lock()
	if g.place != nil {
		c.idle.Remove(g.place)
		g.place = nil
	}
	idle := state == http.StateIdle
	leave := idle && c.waiting
	if idle && !leave {
		g.place = c.idle.PushBack(g)
	}
	if leave {
		c.waiting = false
	}
	c.mu.Unlock()
	if leave {
		g.Close()
	}
}

// A guest is a connection with a place.
type guest struct {
	net.Conn
	crowd *crowd
	once  sync.Once
	place *list.Element // among the idle; guarded by the crowd's mutex
	// lines of the head that is being read, as far as it has come; noHead while
	// none is. http.Server says that a connection is active when it has the head.
	lines atomic.Int64
}

// A line of a head takes some 120 bytes beside its own, which may be four; Apache
// takes a hundred lines. What stands after the head's end in what was read with
// it is counted too, and does no harm: then nothing more is read for the head.
const (
	headLines = 256
	noHead    = math.MinInt64
)

var errHeadLines = errors.New("the head has too many lines")

// Read implements net.Conn, and bounds the lines of a head.
func (g *guest) Read(b []byte) (int, error) {
	before := g.lines.Load()
	if before > headLines {
		return 0, errHeadLines
	}
	n, err := g.Conn.Read(b)
	if before >= 0 {
		g.lines.CompareAndSwap(before, before+int64(bytes.Count(b[:n], []byte{'\n'})))
	}
	return n, err
}

// Close implements net.Conn, and gives the place back.
func (g *guest) Close() error {
	err := g.Conn.Close()
	g.once.Do(func() { <-g.crowd.places })
	return err
}

// SetLinger is net.TCPConn's: proxy resets a connection with it.
func (g *guest) SetLinger(sec int) error {
	if tcp, ok := g.Conn.(*net.TCPConn); ok {
		return tcp.SetLinger(sec)
	}
	return net.ErrClosed
}
