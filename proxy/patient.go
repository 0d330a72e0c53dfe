package proxy

import (
	"net/http"
	"time"
)

// A patient is a ResponseWriter whose patience with the sender ends: one that
// reads no answer must not stay in hand. The server ends the deadline with the
// request.
type patient struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration // with each write
}

func newPatient(w http.ResponseWriter, patience time.Duration) *patient {
	return &patient{w, http.NewResponseController(w), patience}
}

// Unwrap is for http.ResponseController.
func (w *patient) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *patient) Write(b []byte) (int, error) {
	// An error says that this connection has no deadlines.
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience))
	return w.ResponseWriter.Write(b)
}
