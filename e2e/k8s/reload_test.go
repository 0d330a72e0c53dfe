package k8s

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oncegate/e2e/harness"
)

// live builds the smallest pod that can answer 2xx, with a configuration of the
// test's own, and starts it beside an app.
func live(t *testing.T, config, app string, secret map[string]string) *pod {
	t.Helper()
	m, err := Build(examples + "laravel/sqlite")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range m.ConfigMaps {
		if _, ours := c.Data["oncegate.yaml"]; ours {
			c.Data["oncegate.yaml"] = config
		}
	}
	p := newPod(t)
	p.app(t, app)
	p.start(t, m, &m.Workloads[0].Template.Spec, secret)
	return p
}

const rotating = `version: 1
upstream: http://localhost:8080
routes:
  stripe:
    path: ` + harness.WebhookPath + `
    provider: stripe
    secrets: [file:/run/secrets/oncegate/stripe, file:/run/secrets/oncegate/stripe-old]
`

// deliver posts an event that is signed with a secret, and returns the answer's
// status and word.
func (p *pod) deliver(t *testing.T, event harness.Event, secret string) (int, string) {
	now := time.Now().Unix()
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", now, event.Body)
	request, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:9179"+harness.WebhookPath, strings.NewReader(string(event.Body)))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	request.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", now, hex.EncodeToString(mac.Sum(nil))))
	response, err := p.client().Do(request)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
	return response.StatusCode, response.Header.Get("Oncegate-Result")
}

// A signing secret is changed by changing the Secret alone, as the page says. The
// provider goes over to the new one at some moment in between, and no delivery is
// refused at any time.
func TestSecretRotation(t *testing.T) {
	const before, after = "whsec_before", "whsec_after"
	p := live(t, rotating, "127.0.0.1:8080", map[string]string{"stripe": before, "stripe-old": before})
	var signs atomic.Value
	signs.Store(before)
	var sending sync.WaitGroup
	quit := make(chan struct{})
	sending.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-quit:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if status, word := p.deliver(t, harness.NewEvent(n), signs.Load().(string)); word != "fresh" {
				t.Errorf("event %d: %d %s", n, status, word)
			}
		}
	})

	p.volumes["oncegate-secrets"].swap(t, map[string]string{"stripe": after, "stripe-old": before})
	p.await(t, after, http.StatusOK)
	signs.Store(after) // the provider has switched
	p.volumes["oncegate-secrets"].swap(t, map[string]string{"stripe": after, "stripe-old": after})
	p.await(t, before, http.StatusUnauthorized)
	close(quit)
	sending.Wait()
}

// await waits until deliveries that a secret signs are answered so.
func (p *pod) await(t *testing.T, secret string, status int) {
	t.Helper()
	event := harness.NewEvent(900000 + int(time.Now().UnixNano()%99999))
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if got, _ := p.deliver(t, event, secret); got == status {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not answered %d after 20 s", status)
		}
	}
}

// A ConfigMap is taken over as a whole, or not at all.
func TestConfigMapSwap(t *testing.T) {
	secret := map[string]string{"stripe": harness.Secret, "stripe-old": harness.Secret}
	p := live(t, rotating, "127.0.0.1:8080", secret)
	config := p.volumes["oncegate-config"]
	word := func(n int) string {
		_, word := p.deliver(t, harness.NewEvent(n), harness.Secret)
		return word
	}
	if got := word(1); got != "fresh" {
		t.Fatalf("at first: %s", got)
	}
	// One field is right and would be seen, another is wrong.
	config.swap(t, map[string]string{"oncegate.yaml": rotating + "    mode: observe\n    lease: soon\n"})
	p.reloads(t, `result="failed"`)
	if got := word(2); got != "fresh" {
		t.Errorf("after a configuration that is wrong: %s", got)
	}
	config.swap(t, map[string]string{"oncegate.yaml": rotating + "    mode: observe\n"})
	for deadline := time.Now().Add(20 * time.Second); word(3) != "observed"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a right one is not taken over")
		}
	}
}

// reloads waits until the metrics say that a configuration was loaded anew, with
// this label.
func (p *pod) reloads(t *testing.T, label string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		metrics := p.get(t, "http://127.0.0.1:9180/metrics")
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, "oncegate_config_reloads_total{") && strings.Contains(line, label) && !strings.HasSuffix(line, " 0\n") {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no reload with %s is counted", label)
		}
	}
}

// localhost is two addresses in a pod, and an app listens on one of them, which
// depends on its image.
func TestLocalhost(t *testing.T) {
	for _, address := range []string{"127.0.0.1:8080", "[::1]:8080"} {
		t.Run(address, func(t *testing.T) {
			p := live(t, rotating, address, map[string]string{"stripe": harness.Secret, "stripe-old": harness.Secret})
			if status, word := p.deliver(t, harness.NewEvent(1), harness.Secret); word != "fresh" {
				t.Errorf("%d %s", status, word)
			}
		})
	}
}
