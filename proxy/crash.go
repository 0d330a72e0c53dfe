package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
)

// crashed says that a request was cut off by a programming error, and cuts it
// off: the sender gets no answer, and comes again. To be deferred. What the panic
// says is left out unless it is the runtime's, since it may hold what was sent.
func (h *Handler) crashed() {
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
	panic(http.ErrAbortHandler)
}
