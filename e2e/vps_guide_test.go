package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"oncegate/e2e/harness"
)

const guideFile = "../docs/laravel-vps.md"

// A command block of the guide, as it stands there.
type guideBlock struct {
	section string
	script  string
}

// readGuide returns the guide's blocks of commands in their order.
func readGuide(t *testing.T) (blocks []guideBlock) {
	t.Helper()
	text, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	section, within := "", false
	for line := range strings.Lines(string(text)) {
		switch {
		case within && line == "```\n":
			within = false
		case within:
			blocks[len(blocks)-1].script += line
		case line == "```sh\n":
			within = true
			blocks = append(blocks, guideBlock{section: section})
		case strings.HasPrefix(line, "```"):
			t.Fatalf("the guide has a block that is not tried: %s", line)
		case strings.HasPrefix(line, "## "):
			section = strings.TrimSpace(line[3:])
		}
	}
	return blocks
}

// followGuide does what docs/laravel-vps.md says, command by command as they are
// written, and looks after each block at what the shop has come to.
func followGuide(t *testing.T, dist string) {
	s := newVPSShop(t)
	put(t, s.Machine, dist, "*.deb")
	put(t, s.Machine, dist, "SHA256SUMS")
	original := s.Run(t, "cat "+shopSite)
	seen := map[string]func(t *testing.T, n int){
		"1. Install": func(t *testing.T, _ int) { s.twice(t, "", "", 2) },
		"2. See it happen, on staging": func(t *testing.T, _ int) {
			if got := s.payments(t, "staging", ""); got != 2 {
				t.Errorf("staging has made %d payments, want 2", got)
			}
		},
		"3. Configure": func(t *testing.T, n int) {
			if n == 2 {
				s.keepsSecrets(t)
			}
			s.twice(t, "", "", 2)
		},
		"4. Send the webhooks through it": func(t *testing.T, n int) {
			if n == 1 {
				s.waitNginx(t, true)
				s.twice(t, "observed", "observed", 2)
			}
		},
		"5. The first day: observe": func(t *testing.T, n int) {
			if n == 1 {
				s.counted(t)
			}
		},
		"6. Then enforce": func(t *testing.T, n int) {
			switch n {
			case 0:
				s.waitMode(t, "enforce")
				s.twice(t, "fresh", "replay", 1)
			case 1:
				s.tryPathForms(t)
				s.brokenWhileWorking(t)
				s.badReload(t)
			}
		},
		"When something is wrong": func(t *testing.T, n int) {
			if n == 0 {
				s.waitMode(t, "off")
			}
			if n < 2 {
				s.twice(t, "", "", 2)
			} else {
				s.twice(t, "fresh", "replay", 1)
			}
		},
		"Without the second server: straight to PHP-FPM": func(t *testing.T, _ int) {
			s.waitNginx(t, true)
			s.twice(t, "fresh", "replay", 1)
			s.tryPathForms(t)
			s.overTCP(t)
		},
		"Taking it out again": func(t *testing.T, _ int) {
			s.waitNginx(t, false)
			s.twice(t, "", "", 2)
			if now := s.Run(t, "cat "+shopSite); now != original {
				t.Errorf("the site's file is not as it was:\n%s", now)
			}
			s.Run(t, "! test -e /etc/oncegate && ! test -e /var/lib/oncegate && ! test -e /usr/bin/oncegate && ! systemctl cat oncegate")
		},
	}
	counts := map[string]int{}
	for _, b := range readGuide(t) {
		n := counts[b.section]
		counts[b.section]++
		// In a subtest, so that its name says where in the guide it went wrong; what
		// follows has no sense then.
		if !t.Run(fmt.Sprintf("%s, block %d", b.section, n+1), func(t *testing.T) {
			t.Logf("%s\n%s", b.script, s.Run(t, b.script))
			look, ok := seen[b.section]
			if !ok {
				t.Fatal("the test does not know what this section leads to")
			}
			look(t, n)
		}) {
			return
		}
	}
	for section := range seen {
		if counts[section] == 0 {
			t.Errorf("the guide has no commands under %q", section)
		}
	}
}

// keepsSecrets sees that the secrets of the .env are in no log, and that nobody
// else can read what oncegate was given.
func (s *vpsShop) keepsSecrets(t *testing.T) {
	t.Helper()
	log := s.Run(t, "journalctl -u oncegate --no-pager -o cat")
	for _, secret := range []string{harness.Secret, "p@ss/w#rd"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds a secret")
		}
	}
	if !strings.Contains(log, "listening on 127.0.0.1:8080") {
		t.Errorf("the log does not say how it was started:\n%s", log)
	}
	if out, err := s.Try(t, "runuser -u nobody -- cat /etc/oncegate/env /run/credentials/oncegate.service/env"); err == nil {
		t.Errorf("anybody can read the .env: %s", out)
	}
}

// counted sees that the first day's duplicates were counted.
func (s *vpsShop) counted(t *testing.T) {
	t.Helper()
	metrics := s.Run(t, "curl -s http://127.0.0.1:9180/metrics")
	for _, line := range []string{`oncegate_deliveries_total{`, `oncegate_duplicates_total{`} {
		found := false
		for l := range strings.Lines(metrics) {
			if strings.HasPrefix(l, line) && strings.Contains(l, "stripe") && !strings.HasSuffix(strings.TrimSpace(l), " 0") {
				found = true
			}
		}
		if !found {
			t.Errorf("nothing was counted in %s}", line)
		}
	}
}

// waitNginx waits until nginx's old workers are gone, and deliveries go through
// oncegate or don't.
func (s *vpsShop) waitNginx(t *testing.T, through bool) {
	t.Helper()
	eventually(t, "nginx goes by its new configuration", func() bool {
		a := s.sender.Send(t.Context(), "https://shop.example"+harness.WebhookPath, harness.Delivery{Body: []byte("{}")})
		return a.Status != 0 && (a.Result() != "") == through && s.Run(t, "pgrep -fc '[n]ginx: worker.*shutting' || true") == "0\n"
	})
}

// waitMode waits until a reload has taken a mode over: the command returns when
// oncegate has been told.
func (s *vpsShop) waitMode(t *testing.T, mode string) {
	t.Helper()
	eventually(t, "the log says that the mode is "+mode, func() bool {
		out := s.Run(t, "journalctl -u oncegate --no-pager -o cat | grep 'was reloaded' | tail -n 1 || true")
		return strings.Contains(out, "stripe "+mode+" ")
	})
}

// tryPathForms sends an unsigned delivery in every form of the path, to the shop
// by the guide's nginx and to staging by one without oncegate: what leads to the
// handler there must not lead to it here.
func (s *vpsShop) tryPathForms(t *testing.T) {
	t.Helper()
	send := func(host, form string) harness.Answer {
		lines := []string{"POST " + form + " HTTP/1.1", "Host: " + host, "Content-Type: application/json"}
		return harness.SendRawOver(t.Context(), s.Dial, "127.0.0.1:80", lines, harness.NewEvent(1).Body)
	}
	leads := 0
	for _, form := range pathForms() {
		open, guarded := send("staging.shop.example", form), send("shop.example", form)
		if strings.Contains(string(guarded.Body), handlerRefused) {
			t.Errorf("%q leads to the handler past oncegate: %v", form, guarded)
		}
		if !strings.Contains(string(open.Body), handlerRefused) {
			continue
		}
		leads++
		if guarded.Result() != "unverified" || guarded.Status != 401 {
			t.Errorf("%q leads to the handler, and is not refused by oncegate: %v", form, guarded)
		}
	}
	if leads < 10 {
		t.Errorf("only %d forms lead to the handler without oncegate: this proves little", leads)
	}
}

// brokenWhileWorking kills oncegate while the shop works on an event. nginx must
// not send the event another way.
func (s *vpsShop) brokenWhileWorking(t *testing.T) {
	t.Helper()
	e := s.event()
	answers := make(chan harness.Answer, 1)
	go func() { answers <- s.deliver(t, e) }()
	eventually(t, "the shop works on the event", func() bool { return s.payments(t, "shop", e.ID) > 0 })
	s.Run(t, "systemctl kill --signal=SIGKILL oncegate")
	if a := <-answers; a.Status != 502 {
		t.Errorf("a delivery whose attempt broke was answered %v, want nginx's 502", a)
	}
	eventually(t, "systemd has started oncegate again", func() bool {
		_, err := s.Try(t, "oncegate healthcheck")
		return err == nil
	})
	if a := s.deliver(t, e); a.OK() || a.Status != 503 {
		t.Errorf("the event came again while the shop may have been working on it: %v", a)
	}
	if got := s.payments(t, "shop", e.ID); got != 1 {
		t.Errorf("the event made %d payments", got)
	}
}

// badReload has a wrong configuration reloaded.
func (s *vpsShop) badReload(t *testing.T) {
	t.Helper()
	s.Run(t, "cp /etc/oncegate/oncegate.yaml right.yaml && sed -i 's/provider: stripe/provider: strype/' /etc/oncegate/oncegate.yaml")
	out, err := s.Try(t, "systemctl reload oncegate")
	if err == nil {
		t.Errorf("the reload of a wrong file succeeded: %s", out)
	}
	if log := s.Run(t, "journalctl -u oncegate --no-pager -o cat"); !strings.Contains(log, "did you mean stripe") {
		t.Error("the log does not say what is wrong")
	}
	s.twice(t, "fresh", "replay", 1)
	s.Run(t, "cp right.yaml /etc/oncegate/oncegate.yaml && systemctl reload oncegate")
}

// overTCP has PHP-FPM listen on TCP too, as the guide says it in a sentence.
func (s *vpsShop) overTCP(t *testing.T) {
	t.Helper()
	s.Run(t, `
for pool in /etc/php/*/fpm/pool.d/www.conf; do
	sed 's/^\[www\]/[tcp]/; s/^listen = .*/listen = 127.0.0.1:9000/' "$pool" > "$(dirname "$pool")/tcp.conf"
done
for unit in /lib/systemd/system/php*-fpm.service; do systemctl restart "$(basename "$unit")"; done
sed -i 's|^upstream: .*|upstream: fcgi://127.0.0.1:9000?root=/home/forge/shop/public|' /etc/oncegate/oncegate.yaml
rm /etc/systemd/system/oncegate.service.d/php-fpm.conf
systemctl daemon-reload
systemctl restart oncegate
`)
	eventually(t, "oncegate is ready", func() bool {
		_, err := s.Try(t, "oncegate healthcheck")
		return err == nil
	})
	s.twice(t, "fresh", "replay", 1)
}
