package forward

import (
	"sync"
	"time"
)

// A pool keeps connections between exchanges, the last used on top: those at the
// bottom grow old and go.
type pool struct {
	max     int
	timeout time.Duration

	mu     sync.Mutex // guards all below
	idle   []*conn
	sweep  *time.Timer // nil: none is due
	closed bool
}

// get returns a kept connection that is open and silent, or nil. Those that are
// not are closed: nothing was written to them.
func (p *pool) get() *conn {
	for {
		c := p.pop()
		if c == nil {
			return nil
		}
		if time.Since(c.idle) < p.timeout && c.quiet() {
			return c
		}
		c.cut()
	}
}

func (p *pool) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	c := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return c
}

// put keeps a connection, or closes it where enough are kept already.
func (p *pool) put(c *conn) {
	c.idle = time.Now()
	c.reused = true
	c.wire.sent.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.max {
		c.cut()
		return
	}
	p.idle = append(p.idle, c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.timeout, p.expire)
	}
}

// expire closes what has been unused for too long, and sees to the next time.
func (p *pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.idle) && time.Since(p.idle[old].idle) >= p.timeout {
		p.idle[old].cut()
		old++
	}
	kept := copy(p.idle, p.idle[old:])
	clear(p.idle[kept:])
	p.idle = p.idle[:kept]
	p.sweep = nil
	if kept > 0 && !p.closed {
		p.sweep = time.AfterFunc(p.timeout-time.Since(p.idle[0].idle), p.expire)
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.cut()
	}
	p.idle = nil
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
}
