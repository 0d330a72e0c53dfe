package proxy

import "sync/atomic"

// A hand counts the deliveries in hand, and the bytes of their bodies and
// answers, against a limit. The zero hand takes nothing. It is safe for
// concurrent use.
type hand struct {
	deliveries, bytes       atomic.Int64
	maxDeliveries, maxBytes atomic.Int64
}

func (h *hand) limit(deliveries int, bytes int64) {
	h.maxDeliveries.Store(int64(deliveries))
	h.maxBytes.Store(bytes)
}

// take admits one delivery, if there is room.
func (h *hand) take() bool {
	if h.deliveries.Add(1) > h.maxDeliveries.Load() {
		h.deliveries.Add(-1)
		return false
	}
	return true
}

// grow admits n more bytes, if there is room.
func (h *hand) grow(n int64) bool { return h.growTo(h.maxBytes.Load(), n) }

// spare admits n more bytes that are good to have and no more: half of the room
// stays free of them.
func (h *hand) spare(n int64) bool { return h.growTo(h.maxBytes.Load()/2, n) }

func (h *hand) growTo(most, n int64) bool {
	if h.bytes.Add(n) > most {
		h.bytes.Add(-n)
		return false
	}
	return true
}

// spareRoom is the room of bodies that are no delivery's, and must be read ahead.
type spareRoom struct{ hand *hand }

// Take implements forward.Room.
func (r spareRoom) Take(n int64) bool { return r.hand.spare(n) }

// GiveBack implements forward.Room.
func (r spareRoom) GiveBack(n int64) { r.hand.giveBack(n) }

// hold counts n more bytes, room or not.
func (h *hand) hold(n int64) { h.bytes.Add(n) }

// giveBack gives bytes back.
func (h *hand) giveBack(n int64) { h.bytes.Add(-n) }

// drop gives a delivery and its bytes back.
func (h *hand) drop(bytes int64) {
	h.bytes.Add(-bytes)
	h.deliveries.Add(-1)
}
