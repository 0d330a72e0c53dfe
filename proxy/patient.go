package proxy

import (
	"net/http"
	"time"
)

// A patient is a ResponseWriter whose patience with the client ends: one that
// takes nothing of its answer must not stay in hand, nor keep a worker of the app
// that can't write on. The server ends the deadline with the request.
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
	w.renew()
	return w.ResponseWriter.Write(b)
}

// renew begins anew. To be called at the end too: the server still has something
// to write, and the last write may be long ago.
func (w *patient) renew() {
	// An error says that this connection has no deadlines.
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience))
}
