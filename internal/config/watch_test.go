package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A watched configuration in a temporary folder. What Changed was called with
// is a lease ("11s"), which tells one configuration from another, or "faults".
type watchTest struct {
	t       *testing.T
	dir     string
	results chan string
	force   chan os.Signal
}

func (w *watchTest) path(name string) string { return filepath.Join(w.dir, name) }

func (w *watchTest) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watchTest) replace(name, text string) {
	w.t.Helper()
	w.write(name+".new", text)
	w.must(os.Rename(w.path(name+".new"), w.path(name)))
}

func (w *watchTest) link(target, name string) {
	w.t.Helper()
	w.must(os.Symlink(target, w.path(name+".new")))
	w.must(os.Rename(w.path(name+".new"), w.path(name)))
}

func (w *watchTest) mkdir(name string) {
	w.t.Helper()
	w.must(os.MkdirAll(w.path(name), 0o700))
}

func (w *watchTest) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *watchTest) want(result string) {
	w.t.Helper()
	select {
	case got := <-w.results:
		if got != result {
			w.t.Fatalf("got %s, want %s", got, result)
		}
	case <-time.After(20 * time.Second):
		w.t.Fatalf("nothing came; want %s", result)
	}
}

// watchedFile is a configuration whose lease is n seconds.
func watchedFile(n int, secret string) string {
	return fmt.Sprintf("state_dir: /srv\nlease: %ds\nupstream: http://127.0.0.1:8000\nroutes: {shop: {path: /hook, provider: stripe, secrets: %q}}\n", n, secret)
}

// startWatch watches the configuration at file until the test ends.
func startWatch(t *testing.T, dir, file string) *watchTest {
	t.Helper()
	w := &watchTest{t: t, dir: dir, results: make(chan string, 100), force: make(chan os.Signal)}
	o := Options{Path: file}
	current, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	watcher := &Watcher{
		Options: o, Current: current, Force: w.force, Quiet: 20 * time.Millisecond, Poll: time.Hour,
		Degraded: func(err error) { t.Errorf("degraded: %v", err) },
		Changed: func(c *Config, err error) {
			if (c == nil) == (err == nil) {
				t.Error("must be called with a configuration or with faults")
			}
			if err != nil {
				w.results <- "faults"
			} else {
				w.results <- c.Routes[0].Lease.String()
			}
		},
	}
	go func() {
		defer close(done)
		watcher.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	// A forced load says that the loop runs, so that what follows is a change.
	w.force <- syscall.SIGHUP
	<-w.results
	return w
}

func TestWatchFile(t *testing.T) {
	dir := t.TempDir()
	w := &watchTest{t: t, dir: dir}
	w.write("oncegate.yaml", watchedFile(10, "s3cret"))
	w = startWatch(t, dir, w.path("oncegate.yaml"))
	w.write("unrelated", "x")
	// Written in place, it may be seen half written before.
	w.write("oncegate.yaml", watchedFile(11, "s3cret"))
	for got := ""; got != "11s"; {
		select {
		case got = <-w.results:
		case <-time.After(20 * time.Second):
			t.Fatal("the change was not seen")
		}
	}
	w.replace("oncegate.yaml", watchedFile(12, "s3cret"))
	w.want("12s")
	w.replace("oncegate.yaml", watchedFile(12, "s3cret")) // the same again: nothing is loaded
	w.replace("oncegate.yaml", "lease: [")
	w.want("faults")
	w.must(os.Remove(w.path("oncegate.yaml")))
	w.want("faults")
	w.replace("oncegate.yaml", watchedFile(13, "s3cret"))
	w.want("13s")
	w.force <- syscall.SIGHUP
	w.want("13s")
}

func TestWatchSecretFile(t *testing.T) {
	dir := t.TempDir()
	w := &watchTest{t: t, dir: dir}
	w.mkdir("secrets")
	w.mkdir("others")
	w.write("secrets/stripe", "one\n")
	w.write("oncegate.yaml", watchedFile(10, "file:"+w.path("secrets/stripe")))
	w = startWatch(t, dir, w.path("oncegate.yaml"))
	w.replace("secrets/stripe", "two\n")
	w.want("10s")
	w.replace("secrets/stripe", "\n")
	w.want("faults")
	// A secret that is new in the configuration is watched too.
	w.write("others/stripe", "three\n")
	w.replace("oncegate.yaml", watchedFile(11, "file:"+w.path("others/stripe")))
	w.want("11s")
	w.replace("others/stripe", "four\n")
	w.want("11s")
}

// A ConfigMap is mounted as links through ..data, which alone is swapped.
func TestWatchConfigMap(t *testing.T) {
	dir := t.TempDir()
	w := &watchTest{t: t, dir: dir}
	w.mkdir("..1")
	w.write("..1/oncegate.yaml", watchedFile(10, "s3cret"))
	w.link("..1", "..data")
	w.link("..data/oncegate.yaml", "oncegate.yaml")
	w = startWatch(t, dir, w.path("oncegate.yaml"))
	for n := 2; n < 5; n++ {
		next := fmt.Sprintf("..%d", n)
		w.mkdir(next)
		w.write(next+"/oncegate.yaml", watchedFile(10+n, "s3cret"))
		w.link(next, "..data")
		w.must(os.RemoveAll(w.path(fmt.Sprintf("..%d", n-1))))
		w.want(fmt.Sprintf("%ds", 10+n))
	}
}

// A deploy without downtime makes a new folder and swaps the link to it.
func TestWatchDeploy(t *testing.T) {
	dir := t.TempDir()
	w := &watchTest{t: t, dir: dir}
	w.mkdir("shared")
	w.write("shared/stripe", "one")
	w.mkdir("releases/1")
	w.link("../../shared/stripe", "releases/1/stripe")
	w.write("releases/1/oncegate.yaml", watchedFile(10, "file:"+w.path("current/stripe")))
	w.link("releases/1", "current")
	w = startWatch(t, dir, w.path("current/oncegate.yaml"))
	w.mkdir("releases/2")
	w.link("../../shared/stripe", "releases/2/stripe")
	w.write("releases/2/oncegate.yaml", watchedFile(12, "file:"+w.path("current/stripe")))
	w.link("releases/2", "current")
	w.want("12s")
	w.replace("shared/stripe", "two") // behind a link of the new release
	w.want("12s")
	w.replace("releases/2/oncegate.yaml", watchedFile(13, "file:"+w.path("current/stripe")))
	w.want("13s")
}

func TestWatchByPolling(t *testing.T) {
	dir := t.TempDir()
	w := &watchTest{t: t, dir: dir, results: make(chan string, 100)}
	w.write("oncegate.yaml", watchedFile(10, "s3cret"))
	o := Options{Path: w.path("oncegate.yaml")}
	current, err := Load(o)
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	run := watchRun{
		Watcher: &Watcher{Options: o, Current: current, Changed: func(c *Config, err error) {
			w.results <- fmt.Sprint(c.Routes[0].Lease)
			cancel()
		}},
		Quiet: time.Hour, Poll: 5 * time.Millisecond, sources: current.sources, watched: map[string]bool{},
	}
	w.replace("oncegate.yaml", watchedFile(11, "s3cret"))
	run.loop(ctx, nil, nil)
	w.want("11s")
}

func TestPointsOf(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &watchTest{t: t, dir: dir}
	w.mkdir("a/b")
	w.write("a/b/file", "x")
	w.link("./a", "link")
	w.link(dir+"/link/b/../b/file", "absolute")
	w.link("loop", "loop")
	for path, want := range map[string]string{
		"a/b/file":    "a/b:file",
		"link/b/file": ":link a/b:file",
		"absolute":    ":absolute :link a/b:file",
		"a/b/no":      "a/b:no",
		"none/x/y":    ":none",
	} {
		var got []string
		for _, p := range pointsOf(w.path(path)) {
			folder, err := filepath.Rel(dir, p.folder)
			w.must(err)
			got = append(got, strings.TrimPrefix(folder, ".")+":"+p.name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if n := len(pointsOf(w.path("loop"))); n != maxLinks+1 {
		t.Errorf("a loop has %d points", n)
	}
}
