package faults

import "time"

// A Policy is a route's on_unknown.
type Policy string

// The policies.
const (
	Retry   Policy = "retry"
	Hold    Policy = "hold"
	Witness Policy = "witness"
)

// A Delivery is one request to a gate, and what came back.
type Delivery struct {
	Event          string
	Gate           int
	Sent, Answered time.Time
	Status         int // 0: no whole answer
	Result         string
	Body           []byte
}

// OK reports a whole 2xx.
func (d *Delivery) OK() bool { return d.Status/100 == 2 }

// A Trouble is something that was broken for a while.
type Trouble struct {
	What     string
	Gate     int // whose; -1: both gates'
	From, To time.Time
	// Harmless says that it is no reason to run anything again.
	Harmless bool
}

// A Move is the moment in which the store's clock was put forward, or back.
type Move struct {
	From, To time.Time
	By       time.Duration
	// Leap says that it went past lease and app limit, which both end by it.
	Leap bool
}

// A Life is that of one gate's process.
type Life struct {
	Gate int
	From time.Time
	// Counted is what its metric of possible second runs said, and when it was
	// asked.
	Counted []Count
}

// A Count is a reading of a metric.
type Count struct {
	At time.Time
	N  int
}

// A World's Record is all that the judge knows of it.
type Record struct {
	Policy     Policy
	Events     []string
	Runs       []*Run
	Deliveries []*Delivery
	Troubles   []Trouble
	Moves      []Move
	AppDied    []time.Time
	Lives      []*Life
	// Exchanges is what the wires to the app have seen.
	Exchanges []*Exchange
	// Seed says how attempts ended.
	Seed int64
	// Decided says which events an operator has spoken about.
	Decided map[string]bool
}
