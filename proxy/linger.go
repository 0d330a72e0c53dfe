package proxy

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// lingerTime is how long the rest of a request is read after its answer. A sender
// that stalls holds up a shutdown for as long.
const lingerTime = 10 * time.Second

// linger reads what is still to come of a request whose whole answer is written,
// and throws it away. Ending the connection at once would reset it under a sender
// that is still writing, and most senders never see the answer then (RFC 9112,
// section 9.6): nginx makes a 502 of it, whatever was said here.
func linger(w http.ResponseWriter, rest io.Reader) {
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(lingerTime)) != nil || control.Flush() != nil {
		return // the server's own way of ending it holds
	}
	// However it ends, the connection ends after it.
	_, _ = io.Copy(io.Discard, rest)
}

// A sharedBody may be read by the app's side, which may not have noticed yet that
// nobody waits for it, and by linger.
type sharedBody struct {
	mu sync.Mutex // guards reading
	io.ReadCloser
}

func (b *sharedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ReadCloser.Read(p)
}
