package faults

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"oncegate/internal/testenv"
)

// appEnv holds, in the app's process, what it is to be.
const appEnv = "ONCEGATE_FAULTS_APP"

// An appSpec is what an app's process is told.
type appSpec struct {
	Seed   int64
	Ledger string
	// Addrs are where it listens, one for each gate, so that it knows by whom a
	// run was forwarded.
	Addrs []string
}

// startApp runs the app: this test binary, which [RunApp] makes one.
func startApp(t testing.TB, s appSpec) *testenv.Process {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return testenv.Run(t, testenv.Command{
		Name: "app", Path: self, Env: append(os.Environ(), appEnv+"="+string(text)),
		Ready: func() error {
			c, err := net.Dial("tcp", s.Addrs[len(s.Addrs)-1])
			if err != nil {
				return err
			}
			return c.Close()
		},
	})
}

// RunApp makes this process the app if it was started as one, and reports
// whether it was. The app ends by a signal, or with its error.
func RunApp() (bool, error) {
	text := os.Getenv(appEnv)
	if text == "" {
		return false, nil
	}
	var s appSpec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return true, err
	}
	book, err := openLedger(s.Ledger)
	if err != nil {
		return true, err
	}
	failed := make(chan error)
	for i, addr := range s.Addrs {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return true, err
		}
		go func() { failed <- (&app{s, book, i}).accept(l) }()
	}
	return true, <-failed
}

// An app is the app as one gate reaches it.
type app struct {
	appSpec
	book *ledger
	gate int
}

func (a *app) accept(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			if err := a.serve(c.(*net.TCPConn)); err != nil {
				fmt.Fprintln(os.Stderr, "app:", err)
			}
		}()
	}
}

// serve answers the requests of a connection. Who hangs up stops nothing.
func (a *app) serve(c *net.TCPConn) error {
	in := bufio.NewReader(c)
	for {
		r, body, ok := readRequest(in)
		if !ok {
			return nil // the other side has ended it
		}
		run := &Run{ID: rand.Text()[:12], Gate: a.gate, Began: time.Now()}
		var event struct{ ID string }
		if err := json.Unmarshal(body, &event); err != nil {
			return err
		}
		run.Event = event.ID
		var err error
		if run.Attempt, err = strconv.Atoi(r.Header.Get("Oncegate-Attempt")); err != nil {
			run.Attempt = -1 // the judge will find it
		}
		if goOn, err := a.run(c, run); err != nil || !goOn {
			return err
		}
	}
}

// readRequest reads a whole request, if one comes.
func readRequest(in *bufio.Reader) (r *http.Request, body []byte, ok bool) {
	r, err := http.ReadRequest(in)
	if err == nil {
		body, err = io.ReadAll(r.Body)
	}
	return r, body, err == nil
}

// run does what the attempt's ending says, and reports whether the connection
// may carry another request.
func (a *app) run(c *net.TCPConn, run *Run) (goOn bool, err error) {
	e := EndingOf(a.Seed, run.Event, run.Attempt)
	if err := a.book.write(began, run); err != nil {
		return false, err
	}
	if e.Early { // the backend goes on, and the next request does not wait for it
		go func() {
			if _, err := a.work(e, run); err != nil {
				fmt.Fprintln(os.Stderr, "app:", err)
			}
		}()
		return answer(c, e, run), nil
	}
	whole, err := a.work(e, run)
	return whole && err == nil && answer(c, e, run), err
}

// work does the work, and reports whether the time sufficed.
func (a *app) work(e Ending, run *Run) (whole bool, err error) {
	time.Sleep(e.Work)
	if time.Since(run.Began) > runLimit {
		return false, a.book.write(ended, run)
	}
	if e.Effect {
		if err := a.book.write(effect, run); err != nil {
			return false, err
		}
	}
	time.Sleep(e.Linger)
	return true, a.book.write(ended, run)
}

// answer answers, or breaks the connection. The gate may be gone; that is no
// matter of the app's.
func answer(c *net.TCPConn, e Ending, run *Run) (goOn bool) {
	var b bytes.Buffer
	if e.Status != 0 {
		body := receipt(run.ID)
		fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", e.Status, http.StatusText(e.Status), len(body), body)
	}
	switch e.Break {
	case "head":
		b.Truncate(20)
	case "body":
		b.Truncate(b.Len() - 9)
	}
	_, err := c.Write(b.Bytes())
	if e.Break == "reset" {
		_ = c.SetLinger(0) // so that Close sends a reset
	}
	if e.Break != "" {
		c.Close()
	}
	return err == nil && e.Break == ""
}

// receipt is the body of the answer to a run.
func receipt(run string) string { return "receipt of run " + run + "\n" }
