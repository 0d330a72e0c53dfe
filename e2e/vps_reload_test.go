package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82/webhook"

	"oncegate/e2e/harness"
	"oncegate/internal/testenv"
)

// A deployed oncegate is run by hand in a folder of releases, as zero-downtime
// deploys make them: current is a link to the release that holds, and
// configuration and .env are read through it.
type deployed struct {
	*harness.Gate
	dir  string
	conf string // of every release, but for what a test replaces
}

const upstreamMark = "http://upstream"

// deploy starts oncegate with release 1.
func deploy(t *testing.T, upstream, more string) *deployed {
	t.Helper()
	listen, health, admin := testenv.Port(t), testenv.Port(t), testenv.Port(t)
	d := &deployed{dir: testenv.Dir(t), conf: fmt.Sprintf(`version: 1
listen: 127.0.0.1:%d
health: 127.0.0.1:%d
admin: 127.0.0.1:%d
state_dir: %s
upstream: %s
routes:
  stripe:
    path: %s
    provider: stripe
    secrets: ${STRIPE_WEBHOOK_SECRET}
%s`, listen, health, admin, testenv.Dir(t), upstreamMark, harness.WebhookPath, more)}
	d.release(t, 1, strings.Replace(d.conf, upstreamMark, upstream, 1), harness.Secret)
	d.Gate = &harness.Gate{
		URL: fmt.Sprintf("http://127.0.0.1:%d", listen), Health: fmt.Sprintf("http://127.0.0.1:%d", health),
	}
	d.Process = testenv.Run(t, testenv.Command{
		Name: "oncegate", Path: binary.Path(t), Args: append([]string{"serve"}, d.args()...), Dir: d.dir,
		Ready: func() error {
			response, err := http.Get(d.Health + "/readyz")
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				return fmt.Errorf("/readyz answered %s", response.Status)
			}
			return nil
		},
	})
	return d
}

func (d *deployed) args() []string {
	return []string{"--config", d.dir + "/current/oncegate.yaml", "--env-file", d.dir + "/current/.env"}
}

// release makes a release, and swaps the link in one step, as deploys do.
func (d *deployed) release(t *testing.T, n int, conf, secret string) {
	t.Helper()
	folder := fmt.Sprintf("%s/releases/%d", d.dir, n)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"oncegate.yaml": conf, ".env": "STRIPE_WEBHOOK_SECRET=" + secret + "\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(folder, d.dir+"/next"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.dir+"/next", d.dir+"/current"); err != nil {
		t.Fatal(err)
	}
}

// reloads waits until so many reloads have had a result.
func (d *deployed) reloads(t *testing.T, result string, n float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%v reloads that were %s", n, result), func() bool {
		return d.Metric(t, "oncegate_config_reloads_total", "result="+result) >= n
	})
}

// signedWith is an event's delivery under another secret.
func signedWith(e harness.Event, secret string) harness.Delivery {
	d := e.Delivery()
	d.Header.Set("Stripe-Signature", webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
		Payload: e.Body, Secret: secret, Timestamp: time.Now(),
	}).Header)
	return d
}

// TestReload changes the configuration under a running oncegate.
func TestReload(t *testing.T) {
	answering := func(text string) func(*harness.Request) harness.Reply {
		return func(*harness.Request) harness.Reply { return harness.Reply{Body: []byte(text)} }
	}
	sender := harness.NewSender()
	defer sender.Close()

	t.Run("a deploy swaps a link", func(t *testing.T) {
		app := harness.NewApp(t, testenv.Port(t), answering("ok"))
		d := deploy(t, app.URL, "")
		url := d.URL + harness.WebhookPath
		const rotated = "whsec_of_the_second_release"
		d.release(t, 2, strings.Replace(d.conf, upstreamMark, app.URL, 1), rotated)
		d.reloads(t, "done", 1)
		if a := sender.Send(t.Context(), url, signedWith(harness.NewEvent(1), rotated)); a.Result() != "fresh" {
			t.Errorf("with the new release's secret: %v", a)
		}
		if a := sender.Send(t.Context(), url, harness.NewEvent(2).Delivery()); a.Result() != "unverified" {
			t.Errorf("with the old release's secret: %v", a)
		}
	})

	t.Run("an attempt under way keeps its rules", func(t *testing.T) {
		began, goOn := make(chan struct{}), make(chan struct{})
		letGo := sync.OnceFunc(func() { close(goOn) })
		old := harness.NewApp(t, testenv.Port(t), func(*harness.Request) harness.Reply {
			close(began)
			<-goOn
			return harness.Reply{Body: []byte("old")}
		})
		t.Cleanup(letGo) // before the app is waited for
		young := harness.NewApp(t, testenv.Port(t), answering("young"))
		d := deploy(t, old.URL, "")
		url := d.URL + harness.WebhookPath
		answers := make(chan harness.Answer, 1)
		go func() { answers <- sender.Send(t.Context(), url, harness.NewEvent(1).Delivery()) }()
		<-began
		d.release(t, 2, strings.Replace(d.conf, upstreamMark, young.URL, 1)+"    mode: observe\n", harness.Secret)
		d.reloads(t, "done", 1)
		if a := sender.Send(t.Context(), url, harness.NewEvent(2).Delivery()); a.Result() != "observed" || string(a.Body) != "young" {
			t.Errorf("after the reload: %v", a)
		}
		letGo()
		if a := <-answers; a.Result() != "fresh" || string(a.Body) != "old" {
			t.Errorf("the attempt that was under way: %v", a)
		}
		d.release(t, 3, strings.Replace(d.conf, upstreamMark, young.URL, 1), harness.Secret)
		d.reloads(t, "done", 2)
		if a := sender.Send(t.Context(), url, harness.NewEvent(1).Delivery()); a.Result() != "replay" || string(a.Body) != "old" {
			t.Errorf("its duplicate, when the route is enforced again: %v", a)
		}
	})

	t.Run("a wrong file changes nothing and is loud", func(t *testing.T) {
		app := harness.NewApp(t, testenv.Port(t), answering("ok"))
		d := deploy(t, app.URL, "")
		// One route right and changed, one wrong: as a whole or not at all.
		wrong := strings.Replace(d.conf, upstreamMark, app.URL, 1) + "    mode: observe\n  second: {path: /second, provider: strype}\n"
		d.release(t, 2, wrong, harness.Secret)
		d.reloads(t, "failed", 1)
		for i := range 2 {
			want := []string{"fresh", "replay"}[i]
			if a := sender.Send(t.Context(), d.URL+harness.WebhookPath, harness.NewEvent(1).Delivery()); a.Result() != want {
				t.Errorf("by the old rules: %v, want %s", a, want)
			}
		}
		if lines := d.Log(`"level":"ERROR"`, "not reloaded", "did you mean stripe"); len(lines) == 0 {
			t.Error("the log does not say what is wrong")
		}
		check := exec.Command(binary.Path(t), append([]string{"check"}, d.args()...)...)
		out, err := check.CombinedOutput()
		if check.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "oncegate.yaml:13: routes.second.provider") {
			t.Errorf("check: %v\n%s", err, out)
		}
		// SIGHUP reads again, and refuses again.
		d.Signal(t, syscall.SIGHUP)
		d.reloads(t, "failed", 2)
	})

	t.Run("what needs a restart is refused and named", func(t *testing.T) {
		app := harness.NewApp(t, testenv.Port(t), answering("ok"))
		d := deploy(t, app.URL, "")
		moved := strings.Replace(strings.Replace(d.conf, upstreamMark, app.URL, 1), "state_dir: ", "state_dir: /nowhere", 1)
		d.release(t, 2, moved, harness.Secret)
		d.reloads(t, "failed", 1)
		if len(d.Log("state_dir takes a restart")) == 0 && len(d.Log("state_dir", "takes a restart")) == 0 {
			t.Error("the log does not name state_dir")
		}
	})

	t.Run("SIGHUP", func(t *testing.T) {
		app := harness.NewApp(t, testenv.Port(t), answering("ok"))
		d := deploy(t, app.URL, "")
		d.Signal(t, syscall.SIGHUP)
		d.reloads(t, "done", 1)
	})
}

// TestPasswordInAnEnvFile keeps claims in a database whose password would not
// stand in a URL as it is, and reads it as Laravel does.
func TestPasswordInAnEnvFile(t *testing.T) {
	const password = "p@ss/w#rd"
	server := servers.Postgres(t)
	database := server.Database(t)
	user := "forge_" + database
	server.Exec(t, database, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD '%[2]s'; GRANT ALL ON DATABASE %[3]s TO %[1]s; GRANT ALL ON SCHEMA public TO %[1]s`, user, password, database))
	t.Cleanup(func() { server.Exec(t, database, fmt.Sprintf("DROP OWNED BY %[1]s; DROP ROLE %[1]s", user)) })

	shop := harness.NewShop(t, harness.ShopOptions{Work: time.Millisecond})
	home := testenv.Dir(t)
	dotenv := fmt.Sprintf(`APP_NAME="The Shop"
APP_URL=https://shop.example   # with a comment
export DB_HOST=127.0.0.1
DB_PORT=%d
DB_DATABASE=%s
DB_USERNAME=%s
DB_PASSWORD="%s"
REDIS_PASSWORD=null
STRIPE_WEBHOOK_SECRET='%s'
`, server.Port, database, user, password, harness.Secret)
	if err := os.WriteFile(home+"/.env", []byte(dotenv), 0o600); err != nil {
		t.Fatal(err)
	}
	listen, health, admin := testenv.Port(t), testenv.Port(t), testenv.Port(t)
	conf := fmt.Sprintf(`version: 1
listen: 127.0.0.1:%d
health: 127.0.0.1:%d
admin: 127.0.0.1:%d
state_dir: %s
namespace: shop
upstream: %s
store: postgres://${DB_USERNAME}:${DB_PASSWORD}@${DB_HOST}:${DB_PORT}/${DB_DATABASE}?sslmode=disable
routes:
  stripe: {path: %s, provider: stripe, secrets: "${STRIPE_WEBHOOK_SECRET}"}
`, listen, health, admin, testenv.Dir(t), shop.URL, harness.WebhookPath)
	if err := os.WriteFile(home+"/oncegate.yaml", []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--config", home + "/oncegate.yaml", "--env-file", home + "/.env"}
	gate := &harness.Gate{URL: fmt.Sprintf("http://127.0.0.1:%d", listen), Health: fmt.Sprintf("http://127.0.0.1:%d", health)}
	gate.Process = testenv.Run(t, testenv.Command{
		Name: "oncegate", Path: binary.Path(t), Args: append([]string{"serve"}, args...), Dir: home,
		Ready: func() error {
			response, err := http.Get(gate.Health + "/readyz")
			if err == nil {
				err = response.Body.Close()
			}
			return err
		},
	})

	printed := ""
	for _, command := range []string{"check", "doctor", "send"} {
		out, err := exec.Command(binary.Path(t), append([]string{command}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
		printed += string(out)
	}
	if !strings.Contains(printed, "fresh") || shop.Payments(t) != 1 {
		t.Errorf("the shop made %d payments; the commands printed:\n%s", shop.Payments(t), printed)
	}
	if !strings.Contains(printed, "apart from the store's") {
		t.Errorf("doctor says nothing of the clocks:\n%s", printed)
	}
	printed += string(gate.Output().Bytes())
	for _, secret := range []string{password, "p%40ss", harness.Secret} {
		if strings.Contains(printed, secret) {
			t.Errorf("%q was printed", secret)
		}
	}
}
