package k8s

import (
	"crypto/x509"
	"database/sql"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// The image is what the Dockerfile promises, the same each time, and works where
// there is nothing but what it holds.
func TestImage(t *testing.T) {
	w := newWorkshop(t)
	here := filepath.Join(w.dir, "source")
	source(t, here)
	w.build(t, here, "first", "amd64")
	one := w.push(t, "first")

	t.Run("says what it is", func(t *testing.T) {
		c := one.Config
		if c.User != "65532:65532" || !reflect.DeepEqual(c.Entrypoint, []string{"/usr/bin/oncegate"}) {
			t.Errorf("user %q, entrypoint %q", c.User, c.Entrypoint)
		}
		if !reflect.DeepEqual(c.Healthcheck.Test, []string{"CMD", "/usr/bin/oncegate", "healthcheck"}) {
			t.Errorf("health check %q", c.Healthcheck.Test)
		}
		for _, port := range []string{"8080/tcp", "9180/tcp"} {
			if _, ok := c.ExposedPorts[port]; !ok {
				t.Errorf("port %s is not exposed: %v", port, c.ExposedPorts)
			}
		}
		for label, want := range map[string]string{"title": "oncegate", "version": "1.2.3", "revision": "abc", "licenses": "Apache-2.0"} {
			if got := c.Labels["org.opencontainers.image."+label]; got != want {
				t.Errorf("label %s is %q, want %q", label, got, want)
			}
		}
		if one.compressed > 15e6 {
			t.Errorf("%d bytes are pulled", one.compressed)
		}
	})

	t.Run("is the same each time, wherever it is built", func(t *testing.T) {
		elsewhere := filepath.Join(w.dir, "else", "where")
		if err := os.CopyFS(elsewhere, os.DirFS(here)); err != nil {
			t.Fatal(err)
		}
		w.build(t, elsewhere, "second", "amd64")
		two := w.push(t, "second")
		if !reflect.DeepEqual(one, two) {
			t.Errorf("%+v and %+v", one, two)
		}
	})

	t.Run("is built for arm64 too", func(t *testing.T) {
		w.build(t, here, "arm", "arm64")
		if i := w.push(t, "arm"); i.Architecture != "arm64" {
			t.Errorf("architecture %s", i.Architecture)
		}
		files := w.unpack(t, "arm")
		small(t, files)
		f, err := elf.Open(filepath.Join(files, "usr/bin/oncegate"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Machine != elf.EM_AARCH64 {
			t.Errorf("machine %v", f.Machine)
		}
	})

	files := w.unpack(t, "first")
	t.Run("holds a static binary, roots of trust and a folder, and nothing else", func(t *testing.T) {
		small(t, files)
		holds(t, files, "etc/ssl/certs/ca-certificates.crt", "usr/bin/oncegate", "var/lib/oncegate")
		f, err := elf.Open(filepath.Join(files, "usr/bin/oncegate"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Section(".interp") != nil {
			t.Error("the binary loads libraries")
		}
		pem, err := os.ReadFile(filepath.Join(files, "etc/ssl/certs/ca-certificates.crt"))
		if err != nil {
			t.Fatal(err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			t.Error("no roots of trust")
		}
	})
	t.Run("runs", func(t *testing.T) { runs(t, files, one) })
}

// unpack returns the folder that holds an image's files.
func (w *workshop) unpack(t *testing.T, tag string) string {
	t.Helper()
	container := w.buildah(t, w.dir, "from", tag)
	t.Cleanup(func() { w.buildah(t, w.dir, "rm", container) })
	return w.buildah(t, w.dir, "mount", container)
}

// small wants less than 30 MB of files: what a node keeps of an image.
func small(t *testing.T, dir string) {
	t.Helper()
	var size int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, unpacked", size)
	if size > 30e6 {
		t.Errorf("%d bytes, unpacked", size)
	}
}

// holds wants exactly these files and empty folders.
func holds(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if inside, err := os.ReadDir(path); err != nil || len(inside) > 0 {
				return err
			}
		}
		name, err := filepath.Rel(dir, path)
		got = append(got, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("it holds %q, want %q", got, want)
	}
}

// runs serves from the image's files, and asks its health check.
func runs(t *testing.T, files string, i image) {
	for _, made := range []string{"etc/oncegate", "etc/hosts"} { // as a container runtime makes them
		makePlace(t, filepath.Join(files, made))
	}
	app := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply { return harness.Reply{Body: []byte("done")} })
	config, state := testenv.Dir(t), testenv.Dir(t)
	text := "version: 1\nupstream: " + app.URL + "\nroutes:" + harness.StripeRoute
	if err := os.WriteFile(filepath.Join(config, "oncegate.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(config, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(state, 65532, 65532); err != nil {
		t.Fatal(err)
	}

	// The image's own variables, but for the ports, which may be taken here, and
	// the path on which contain.sh finds its tools.
	listen, health := testenv.Port(t), testenv.Port(t)
	env := append(slices.Clone(i.Config.Env), "PATH="+os.Getenv("PATH"), fmt.Sprintf("ONCEGATE_LISTEN=127.0.0.1:%d", listen), fmt.Sprintf("ONCEGATE_HEALTH=127.0.0.1:%d", health), "ONCEGATE_ADMIN=127.0.0.1:0")
	inside := func(command ...string) (string, []string) {
		args := []string{"--mount", "./contain.sh", files, i.Config.User, "/etc/hosts=/etc/hosts=ro", config + "=/etc/oncegate=ro", state + "=/var/lib/oncegate", "--"}
		return "unshare", slices.Concat(args, i.Config.Entrypoint, command)
	}
	check := func(args ...string) error {
		path, args := inside(append([]string{"healthcheck"}, args...)...)
		cmd := exec.Command(path, args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	path, args := inside(i.Config.Cmd...)
	served := testenv.Run(t, testenv.Command{
		Name: "the image", Path: lookPath(t, path), Args: args, Env: env,
		Ready: func() error { return check() },
	})
	if err := check("--live"); err != nil {
		t.Error(err)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d%s", listen, harness.WebhookPath)
	sender := harness.NewSender()
	defer sender.Close()
	for _, want := range []string{"fresh", "replay"} {
		if a := sender.Send(t.Context(), url, harness.NewEvent(1).Delivery()); a.Result() != want {
			t.Errorf("%v, want %s\n%s", a, want, served.Output().Tail(2000))
		}
	}
	if n := len(app.Requests()); n != 1 {
		t.Errorf("the app ran %d times", n)
	}
	if _, err := os.Stat(filepath.Join(state, "oncegate.db")); err != nil {
		t.Errorf("claims are not where the volume is: %v", err)
	}
	served.Signal(t, 15)
	if code := served.Wait(t, 20*time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	t.Run("counts more claims than SQLite sorts in memory", func(t *testing.T) {
		multiply(t, filepath.Join(state, "oncegate.db"), 150_000)
		path, args := inside("stats", "--config", "/etc/oncegate/oncegate.yaml")
		cmd := exec.Command(path, args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "150001") {
			t.Errorf("%v: %s", err, out)
		}
	})
	if err := check(); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("the health check of what has ended: %v", err)
	}
}

// multiply adds n copies of a claim to a file.
func multiply(t *testing.T, path string, n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`WITH RECURSIVE many(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM many WHERE i < ?)
		INSERT INTO claims (namespace, scope, digest, key_text, role, state, mark, reason, attempt, unanswered, token, version,
			lease_until, runs_until, group_key, first_seen, last_seen, written_at, deliveries, answer_status, expires_at)
		SELECT namespace, scope, randomblob(32), key_text, role, state, mark, reason, attempt, unanswered, token, version,
			lease_until, runs_until, group_key, first_seen, last_seen, written_at, deliveries, answer_status, expires_at
		FROM many, (SELECT * FROM claims WHERE scope = 'stripe' LIMIT 1)`, n); err != nil {
		t.Fatal(err)
	}
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
