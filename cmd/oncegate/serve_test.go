package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/testenv"
	"oncegate/lock"
)

// A slowApp answers when it is let, and tells what has reached it.
type slowApp struct {
	*httptest.Server
	arrived chan string // targets
	answer  chan struct{}
}

func newSlowApp(t *testing.T) *slowApp {
	app := &slowApp{arrived: make(chan string, 16), answer: make(chan struct{})}
	app.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		app.arrived <- r.URL.Path
		select {
		case <-app.answer:
		case <-r.Context().Done():
			return
		}
		fmt.Fprint(w, "answer")
	}))
	t.Cleanup(app.Close)
	return app
}

// A served is a running `oncegate serve`.
type served struct {
	cmd          *exec.Cmd
	file         string   // its configuration
	env          []string // nil: the test's own
	url, health  string
	adminURL     string
	stdout, errs lockedBuffer
	log          *os.File // where standard output goes instead; nil: stdout
	ended        chan error
}

// serveProcess starts it, with more top-level lines, and waits until it is ready.
func serveProcess(t *testing.T, app, more string) *served {
	t.Helper()
	s := &served{file: filepath.Join(t.TempDir(), "oncegate.yaml"), ended: make(chan error, 1)}
	s.url = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	s.health = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	writeFile(t, s.file, s.text(app, more))
	s.start(t)
	return s
}

// serveIntoPipe starts it with its log in a pipe, and returns the reader's end.
func serveIntoPipe(t *testing.T, app string) (*served, *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &served{file: filepath.Join(t.TempDir(), "oncegate.yaml"), ended: make(chan error, 1), log: writer}
	s.url = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	s.health = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	writeFile(t, s.file, s.text(app, ""))
	s.start(t)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return s, reader
}

// start starts it by its file, and waits until it is ready.
func (s *served) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(binary(t), "serve", "--config", s.file)
	s.cmd.Env = s.env
	s.cmd.Stdout, s.cmd.Stderr = &s.stdout, &s.errs
	if s.log != nil {
		s.cmd.Stdout = s.log
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		if t.Failed() {
			t.Logf("stderr:\n%s\nlog:\n%s", s.errs.String(), s.stdout.String())
		}
	})
	if err := awaitReady(s.health); err != nil {
		t.Fatal(err)
	}
}

func (s *served) text(app, more string) string {
	return fmt.Sprintf(`version: 1
listen: %s
health: %s
admin: 127.0.0.1:0
state_dir: %s
upstream: %s
%s
routes:
  stripe: {path: /stripe/webhook, provider: stripe, secrets: whsec_test}
`, s.url, s.health, filepath.Dir(s.file), app, more)
}

func (s *served) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// code waits for the process's end and returns its exit code.
func (s *served) code(t *testing.T) int {
	t.Helper()
	select {
	case err := <-s.ended:
		s.ended <- err
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
		return 0
	}
}

func (s *served) config(t *testing.T) *config.Config {
	t.Helper()
	c, err := config.Load(config.Options{Path: s.file, Env: s.env})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// delivers sends one signed delivery of an event, and returns its answer when
// that is there.
func (s *served) delivers(t *testing.T, event string) <-chan answer {
	t.Helper()
	target := &url.URL{Scheme: "http", Host: s.url, Path: "/stripe/webhook"}
	sampler, err := newSampler(s.config(t).Routes[0], target, event)
	if err != nil {
		t.Fatal(err)
	}
	d, err := sampler.signed(0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan answer, 1)
	go func() { got <- deliver(context.Background(), newClient(20*time.Second), target, d) }()
	return got
}

func (s *served) gets(t *testing.T, path string) <-chan int {
	t.Helper()
	got := make(chan int, 1)
	go func() {
		response, err := newClient(20 * time.Second).Get("http://" + s.url + path)
		if err != nil {
			got <- 0
			return
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil {
			got <- -1
			return
		}
		got <- response.StatusCode
	}()
	return got
}

// logs waits until a line of the log holds a text.
func (s *served) logs(t *testing.T, text string) {
	t.Helper()
	s.logsAgain(t, text, 1)
}

func (s *served) logsAgain(t *testing.T, text string, times int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if strings.Count(s.stdout.String(), text) >= times {
			return
		}
	}
	t.Fatalf("not logged: %s", text)
}

func (s *served) probe(t *testing.T, path string) (int, string) {
	t.Helper()
	response, err := newClient(5 * time.Second).Get("http://" + s.health + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// standing reads the record of an event from the store.
func (s *served) standing(t *testing.T, event string) (r lock.Record) {
	t.Helper()
	c := s.config(t)
	err := withStore(t.Context(), c, func(ctx context.Context, store backend) error {
		records, err := store.Read(ctx, []lock.Key{lock.KeyOf(c.Namespace, "stripe", event)})
		if err == nil {
			r = records[0]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// SIGTERM: not ready at once, new connections served for drain_delay, what is in
// hand finished, then 0.
func TestDrains(t *testing.T) {
	app := newSlowApp(t)
	s := serveProcess(t, app.URL, "drain_delay: 2s\ndrain_timeout: 20s")
	delivery, page := s.delivers(t, "evt_1"), s.gets(t, "/page")
	<-app.arrived
	<-app.arrived

	s.signal(t, syscall.SIGTERM)
	s.logs(t, "stopping")
	for {
		if status, body := s.probe(t, "/readyz"); status == http.StatusServiceUnavailable {
			if !strings.Contains(body, "draining") {
				t.Errorf("readyz: %s", body)
			}
			break
		}
	}
	if status, _ := s.probe(t, "/livez"); status != http.StatusOK {
		t.Errorf("livez %d while draining", status)
	}
	late := s.gets(t, "/late") // a new connection
	if got := <-app.arrived; got != "/late" {
		t.Errorf("%s", got)
	}
	close(app.answer)
	if a := <-delivery; a.status != 200 || a.result != "fresh" {
		t.Errorf("delivery in hand: %+v", a)
	}
	if got := <-page; got != 200 {
		t.Errorf("request in hand: %d", got)
	}
	if got := <-late; got != 200 {
		t.Errorf("new request: %d", got)
	}
	if code := s.code(t); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	if r := s.standing(t, "evt_1"); r.State != lock.StateDone {
		t.Errorf("the claim is %s", r.State)
	}
}

// The drain deadline: the attempt is cut and settled as unknown, its sender is
// told so, and the exit is still clean.
func TestDrainDeadline(t *testing.T) {
	app := newSlowApp(t)
	s := serveProcess(t, app.URL, "drain_timeout: 300ms")
	delivery, page := s.delivers(t, "evt_1"), s.gets(t, "/page")
	<-app.arrived
	<-app.arrived
	s.signal(t, syscall.SIGTERM)
	if a := <-delivery; a.status < 500 || a.result != "unknown" {
		t.Errorf("delivery that was cut: %+v", a)
	}
	if code := s.code(t); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	if r := s.standing(t, "evt_1"); r.State != lock.StateUnknown || r.Reason != lock.ReasonShutdown {
		t.Errorf("the claim is %s (%s)", r.State, r.Reason)
	}
	if got := <-page; got == 200 {
		t.Error("a request that was never answered got 200")
	}
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	app := newSlowApp(t)
	s := serveProcess(t, app.URL, "drain_timeout: 1h")
	_ = s.delivers(t, "evt_1")
	<-app.arrived
	s.signal(t, syscall.SIGTERM)
	s.logs(t, "stopping")
	stop := make(chan struct{})
	defer close(stop)
	go func() { // until one comes late enough
		for s.cmd.Process.Signal(syscall.SIGINT) == nil {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	if code := s.code(t); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(s.errs.String(), "stopped at once by a second signal") {
		t.Errorf("stderr: %s", s.errs.String())
	}
	if r := s.standing(t, "evt_1"); r.State != lock.StateRunning {
		t.Errorf("the claim is %s", r.State)
	}
}

// Whoever reads the log may stop reading: a terminal that is held, a full disk. What
// a pipe takes (64 KiB) is soon full.
func TestLogReaderStalls(t *testing.T) {
	app := newSlowApp(t)
	close(app.answer)
	s, reader := serveIntoPipe(t, app.URL)
	for i := range 400 {
		if a := <-s.delivers(t, fmt.Sprintf("evt_%d", i%4)); a.status != 200 {
			t.Fatalf("delivery %d: %+v", i, a)
		}
	}
	s.signal(t, syscall.SIGTERM)
	if code := s.code(t); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}

// Whoever reads the log may end before oncegate: a pager, tee, a supervisor's logger.
func TestLogReaderGone(t *testing.T) {
	app := newSlowApp(t)
	close(app.answer)
	s, reader := serveIntoPipe(t, app.URL)
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"evt_1", "evt_2", "evt_3"} {
		if a := <-s.delivers(t, event); a.status != 200 || a.result != "fresh" {
			t.Errorf("%s: %+v", event, a)
		}
	}
	s.signal(t, syscall.SIGTERM)
	if code := s.code(t); code != exitDone {
		t.Errorf("exit code %d", code)
	}
}

// Two signals at once are one wish, as when a terminal reaches the process and its
// group, or a supervisor both: what is in hand is finished.
func TestTwoSignalsAtOnce(t *testing.T) {
	app := newSlowApp(t)
	s := serveProcess(t, app.URL, "drain_timeout: 1h")
	delivery := s.delivers(t, "evt_1")
	<-app.arrived
	s.signal(t, syscall.SIGINT)
	s.signal(t, syscall.SIGTERM)
	s.logs(t, "stopping")
	close(app.answer)
	if a := <-delivery; a.status != 200 || a.result != "fresh" {
		t.Errorf("B67 delivery in hand: %+v", a)
	}
	if code := s.code(t); code != exitDone {
		t.Errorf("exit code %d", code)
	}
}

// A new configuration is taken over as a whole or not at all.
func TestReload(t *testing.T) {
	app := newSlowApp(t)
	close(app.answer)
	s := serveProcess(t, app.URL, "")
	if a := <-s.delivers(t, "evt_1"); a.result != "fresh" {
		t.Fatalf("%+v", a)
	}

	writeFile(t, s.file, s.text(app.URL, "mode: observe"))
	s.signal(t, syscall.SIGHUP)
	s.logs(t, "the configuration was reloaded")
	if a := <-s.delivers(t, "evt_1"); a.result != "observed" {
		t.Errorf("after a reload: %+v", a)
	}

	const stays = "the configuration was not reloaded"
	writeFile(t, s.file, s.text(app.URL, "mode: enforce\nlease: soon"))
	s.logs(t, stays) // without a signal: the file is watched
	broken := s.text(app.URL, "mode: enforce\nnamespace: other")
	writeFile(t, s.file, broken)
	s.logs(t, "a change of namespace takes a restart")
	writeFile(t, s.file, s.text(app.URL, "mode: observe"))
	if a := <-s.delivers(t, "evt_1"); a.result != "observed" {
		t.Errorf("a configuration that was refused has changed something: %+v", a)
	}
	s.signal(t, syscall.SIGTERM)
	if code := s.code(t); code != exitDone {
		t.Errorf("exit code %d", code)
	}
}
