package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
)

// crashed says that a request was cut off by a programming error, and cuts it
// off: the sender gets no whole answer, and comes again. To be deferred. What the panic
// says is left out unless it is the runtime's, since it may hold what was sent.
func (h *Handler) crashed(w http.ResponseWriter, req *http.Request) {
	what := recover()
	if what == nil {
		return
	}
	if err, ok := what.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		text := fmt.Sprintf("%T", what)
		if err, ok := what.(runtime.Error); ok {
			text = err.Error()
		}
		h.log.Error("panic: a programming error of oncegate's cut a request off; please report it", "error", text, "stack", string(debug.Stack()))
	}
	if !req.ProtoAtLeast(1, 1) {
		reset(w)
	}
	panic(http.ErrAbortHandler)
}

// reset ends a connection so that its client can't take it for the end of the
// answer, which in HTTP/1.0 is nothing but the connection's: nginx, which speaks
// HTTP/1.0 to what is behind it unless told otherwise, would pass half an answer
// on as a whole one.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // then the server closes it
	}
	if tcp, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0) // closed all the same
	}
	conn.Close()
}
