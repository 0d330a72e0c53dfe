package faults

import (
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A teller is a witness over HTTP that looks at the ledger. It never lies; now
// and then it can't tell, or takes its time.
type teller struct {
	*httptest.Server
	ledger   string
	yes, no  atomic.Int64
	untold   atomic.Int64
	mu       sync.Mutex // guards chance
	chance   *rand.Rand
	troubles bool
}

func newTeller(t testing.TB, host, ledger string, chance *rand.Rand, troubles bool) *teller {
	w := &teller{ledger: ledger, chance: chance, troubles: troubles}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	w.Server = &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(w.answer)}}
	w.Start()
	t.Cleanup(w.Close)
	return w
}

func (w *teller) answer(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	fails := w.troubles && w.chance.IntN(10) == 0
	slow := w.troubles && w.chance.IntN(10) == 0
	w.mu.Unlock()
	if fails {
		w.untold.Add(1)
		http.Error(out, "no idea", http.StatusInternalServerError)
		return
	}
	found, err := hasEffect(w.ledger, strings.TrimPrefix(r.URL.Path, "/effects/"))
	if slow {
		time.Sleep(300 * ms) // what was seen is old when it is told
	}
	switch {
	case err != nil:
		http.Error(out, err.Error(), http.StatusInternalServerError)
	case found:
		w.yes.Add(1)
	default:
		w.no.Add(1)
		out.WriteHeader(http.StatusNotFound)
	}
}
