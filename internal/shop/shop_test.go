package shop

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const secret = "whsec_demo"

func signed(body string, at time.Time) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(sum(t, []byte(body), secret))
}

func post(s *Shop, body, signature string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/stripe/webhook", strings.NewReader(body))
	r.Header.Set("Stripe-Signature", signature)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestCareless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(secret, 200*time.Millisecond)
		body := `{"id":"evt_1","type":"invoice.paid"}`
		began := time.Now()
		var answers [5]string
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				w := post(s, body, signed(body, time.Now()))
				answers[i] = w.Body.String()
				if w.Code != 200 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took != 200*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if got := s.Effects(); len(got) != 1 || got[0] != (Effect{"evt_1", 5, 5, 5}) {
			t.Errorf("%+v", got)
		}
		distinct := map[string]bool{}
		for _, a := range answers {
			distinct[a] = true
		}
		if len(distinct) != 5 {
			t.Errorf("second runs can't be told by their answers: %v", answers)
		}
	})
}

func TestEffectsAreKeptByEvent(t *testing.T) {
	s := New(secret, 0)
	for _, id := range []string{"evt_2", "evt_1", "evt_2"} {
		body := fmt.Sprintf(`{"id":%q}`, id)
		post(s, body, signed(body, time.Now()))
	}
	got := s.Effects()
	if len(got) != 2 || got[0] != (Effect{"evt_2", 2, 2, 2}) || got[1] != (Effect{"evt_1", 1, 1, 1}) {
		t.Errorf("%+v", got)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if !strings.Contains(w.Body.String(), `"evt_2"`) {
		t.Errorf("front page: %s", w.Body)
	}
}

func TestRefused(t *testing.T) {
	s := New(secret, 0)
	body := `{"id":"evt_1"}`
	for name, c := range map[string][2]string{
		"no signature":   {body, ""},
		"other body":     {body + " ", signed(body, time.Now())},
		"no event":       {`{}`, signed(`{}`, time.Now())},
		"not JSON":       {`id`, signed(`id`, time.Now())},
		"body too large": {strings.Repeat(" ", maxBody+1), ""},
	} {
		if w := post(s, c[0], c[1]); w.Code != 400 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if got := s.Effects(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if s.Refused() != 2 {
		t.Errorf("refused %d", s.Refused())
	}
	for _, target := range []string{"/stripe/webhook", "/x"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if w.Code != 404 {
			t.Errorf("GET %s: %d", target, w.Code)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := New(secret, 0)
	for i := range maxEvents {
		s.charge(strconv.Itoa(i))
	}
	body := `{"id":"evt_1"}`
	if w := post(s, body, signed(body, time.Now())); w.Code != 507 {
		t.Errorf("%d", w.Code)
	}
}

func TestCheck(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	// Made with: printf '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_demo
	const v1 = "23325a61b4f7230b9b393ae50047056e354118190d0964e1414088ead50b4ce5"
	body := []byte(`{"id":"evt_1"}`)
	for _, c := range []struct {
		name, header string
		late         time.Duration
		want         error
	}{
		{"right", "t=1700000000,v1=" + v1, 0, nil},
		{"others beside it", "t=1700000000,v0=00,v1=00, v1=" + v1, 0, nil},
		{"just in time", "t=1700000000,v1=" + v1, 5 * time.Minute, nil},
		{"late", "t=1700000000,v1=" + v1, 5*time.Minute + time.Second, errStale},
		{"early", "t=1700000000,v1=" + v1, -5*time.Minute - time.Second, errStale},
		{"no time", "v1=" + v1, 0, errUnsigned},
		{"time is no number", "t=1e9,v1=" + v1, 0, errUnsigned},
		{"only v0", "t=1700000000,v0=" + v1, 0, errUnsigned},
		{"other time", "t=1700000001,v1=" + v1, 0, errWrong},
		{"cut", "t=1700000000,v1=" + v1[:62], 0, errWrong},
		{"empty", "t=1700000000,v1=", 0, errWrong},
		{"not hex", "t=1700000000,v1=zz", 0, errWrong},
	} {
		if err := check(c.header, body, secret, at.Add(c.late)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
