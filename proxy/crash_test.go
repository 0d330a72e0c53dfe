package proxy_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oncegate/internal/telemetry"
)

// A deaf writer can't be written to, and says so by a panic.
type deaf struct{ httptest.ResponseRecorder }

func (*deaf) Header() http.Header { panic("whsec_in_a_message") }

// TestCrash: a programming error is said, without what it quotes; what cuts an
// answer off on purpose is none.
func TestCrash(t *testing.T) {
	logged := new(lockedBuffer)
	c := (&rig{t: t, url: newApp(t).URL}).load("namespace: shop\n" + stripeRoute)
	handler, stop := handlerOf(t, c, telemetry.Options{Log: slog.New(slog.NewJSONHandler(logged, nil))})
	defer stop()
	func() {
		defer func() {
			if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("the server is told %v, want ErrAbortHandler", err)
			}
		}()
		handler.ServeHTTP(new(deaf), httptest.NewRequest("POST", "/stripe/webhook", strings.NewReader("{}")))
	}()
	said := logged.String()
	if !strings.Contains(said, `"level":"ERROR","msg":"panic: `) || !strings.Contains(said, "crash_test.go") {
		t.Errorf("logged:\n%s", said)
	}
	if strings.Contains(said, "whsec_in_a_message") {
		t.Errorf("the log quotes the panic:\n%s", said)
	}
}
