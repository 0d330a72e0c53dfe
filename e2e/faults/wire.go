package faults

import (
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A Wire carries a gate's connections to the store or to the app, and breaks
// them: locktest's proxy with more ways to do so.
type Wire struct {
	Addr    string
	to      string
	running sync.WaitGroup

	mu     sync.Mutex // guards what follows
	mode   Mode
	chance *rand.Rand
	conns  map[net.Conn]bool
	gate   chan struct{} // closed while the wire is not dark
	seen   map[net.Conn]*Exchange
	all    []*Exchange
	closed bool
	l      net.Listener
}

// A Mode says what a wire does.
type Mode struct {
	// Before is the chance that a connection is cut in place of passing on what
	// was asked; After, that it is cut in place of passing on what was replied.
	Before, After float64
	// Delay is how long everything is held up, each way.
	Delay time.Duration
	// Gone cuts all connections, and each new one at once. Dark keeps them and
	// passes nothing on.
	Gone, Dark bool
}

func (m Mode) String() string {
	switch {
	case m.Gone:
		return "gone"
	case m.Dark:
		return "dark"
	case m.Delay > 0:
		return fmt.Sprintf("slow by %v", m.Delay)
	}
	return fmt.Sprintf("cuts %.0f%% before and %.0f%% after", m.Before*100, m.After*100)
}

// NewWire starts a wire on a host's address to another. It ends with the test.
func NewWire(t testing.TB, host, to string, seed uint64) *Wire {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{
		Addr: l.Addr().String(), to: to, l: l, conns: map[net.Conn]bool{}, seen: map[net.Conn]*Exchange{},
		chance: rand.New(rand.NewPCG(seed, 0)), gate: make(chan struct{}),
	}
	close(w.gate)
	w.running.Go(w.accept)
	t.Cleanup(w.close)
	return w
}

// Set changes what the wire does, for the connections that there are too.
func (w *Wire) Set(m Mode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mode.Dark && !m.Dark {
		close(w.gate)
	}
	if m.Dark && !w.mode.Dark {
		w.gate = make(chan struct{})
	}
	w.mode = m
	if m.Gone {
		w.cut()
	}
}

func (w *Wire) cut() {
	for c := range w.conns {
		c.Close()
	}
}

func (w *Wire) accept() {
	for {
		near, err := w.l.Accept()
		if err != nil {
			return // close has closed it
		}
		w.mu.Lock()
		gone := w.mode.Gone
		w.mu.Unlock()
		if gone {
			near.Close()
			continue
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil {
			near.Close()
			continue
		}
		if !w.keep(near, far) {
			return
		}
		w.running.Go(func() {
			w.carry(near, far, func(m Mode) float64 { return m.Before }, func(text []byte) { w.asks(near, text) })
		})
		w.running.Go(func() {
			w.carry(far, near, func(m Mode) float64 { return m.After }, func([]byte) { w.answers(near) })
		})
	}
}

// An Exchange is what a wire has seen of a run: when it was asked for, and when
// the answer was passed on.
type Exchange struct {
	Event          string
	Attempt        int
	Asked, Replied time.Time // zero: never
}

var announced = regexp.MustCompile(`(?s)Oncegate-Event: [^:]*:(\S+)\r\n.*Oncegate-Attempt: (\d+)\r\n`)

// asks notes which run is asked for over a connection.
func (w *Wire) asks(near net.Conn, text []byte) {
	found := announced.FindSubmatch(text)
	if found == nil {
		return
	}
	attempt, err := strconv.Atoi(string(found[2]))
	if err != nil {
		return // no number of ours
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &Exchange{Event: string(found[1]), Attempt: attempt, Asked: time.Now()}
	w.seen[near], w.all = e, append(w.all, e)
}

func (w *Wire) answers(near net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.seen[near]; e != nil && e.Replied.IsZero() {
		e.Replied = time.Now()
	}
}

// Exchanges returns what was seen.
func (w *Wire) Exchanges() []*Exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

// carry passes on what comes one way, until the connection is cut.
func (w *Wire) carry(from, to net.Conn, cut func(Mode) float64, note func([]byte)) {
	defer w.drop(from, to)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		note(buffer[:n])
		w.mu.Lock()
		mode, gate := w.mode, w.gate
		lost := w.chance.Float64() < cut(mode)
		w.mu.Unlock()
		<-gate
		if lost || mode.Gone {
			return
		}
		time.Sleep(mode.Delay)
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (w *Wire) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		if w.closed {
			c.Close()
		}
		w.conns[c] = true
	}
	return !w.closed
}

func (w *Wire) drop(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(w.conns, c)
		delete(w.seen, c)
	}
}

func (w *Wire) close() {
	w.Set(Mode{})
	w.l.Close()
	w.mu.Lock()
	w.closed = true
	w.cut()
	w.mu.Unlock()
	w.running.Wait()
}
