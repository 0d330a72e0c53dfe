package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"oncegate/e2e/vps"
)

// put copies the packages that were built to root's folder on a machine.
func put(t *testing.T, m *vps.Machine, dist, pattern string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || names == nil {
		t.Fatalf("nothing was built that is called %s: %v", pattern, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m.Write(t, "/root/"+filepath.Base(name), string(data))
	}
}

// packageLife installs, starts, upgrades, removes and purges the Debian package.
func packageLife(t *testing.T, first, next string) {
	m := vps.Boot(t)
	put(t, m, first, "oncegate_1.0.0_"+runtime.GOARCH+".deb")
	put(t, m, next, "oncegate_1.1.0_*.deb")
	// An app that says how often it was asked is nginx's business elsewhere; here
	// one that answers will do.
	m.Write(t, "/etc/nginx/sites-enabled/default", "server { listen 127.0.0.1:8000; location / { return 200 \"$request_id\"; } }\n")
	m.Run(t, "systemctl start nginx")
	before := everything(t, m)

	m.Run(t, "dpkg -i oncegate_1.0.0_*.deb")
	if out, err := m.Try(t, "systemctl is-active oncegate"); err == nil {
		t.Errorf("it runs before it is configured: %s", out)
	}
	m.Run(t, `systemd-analyze verify /lib/systemd/system/oncegate.service`)
	if out, err := m.Try(t, "systemctl start oncegate"); err == nil {
		t.Errorf("it starts without a configuration: %s", out)
	}
	m.Write(t, "/etc/oncegate/oncegate.yaml", `version: 1
upstream: http://127.0.0.1:8000
state_dir: /var/lib/oncegate
routes:
  stripe: {path: /stripe/webhook, provider: stripe, secrets: "${STRIPE_WEBHOOK_SECRET}"}
`)
	m.Run(t, "echo 'STRIPE_WEBHOOK_SECRET=whsec_of_the_package' >> /etc/oncegate/env && systemctl reset-failed oncegate && systemctl enable --now oncegate")
	ready := func() bool { _, err := m.Try(t, "oncegate healthcheck"); return err == nil }
	eventually(t, "oncegate is ready", ready)

	t.Run("confined", func(t *testing.T) { confined(t, m) })

	const send = "cd /etc/oncegate && oncegate send --env-file env --route stripe --event evt_package"
	if out := m.Run(t, send); !strings.Contains(out, "fresh") {
		t.Errorf("before the upgrade: %s", out)
	}
	pid := m.Run(t, "systemctl show -p MainPID --value oncegate")

	t.Run("a version that finds the configuration wrong leaves the old one running", func(t *testing.T) {
		m.Run(t, "cp /etc/oncegate/oncegate.yaml right.yaml && echo 'nonsense: true' >> /etc/oncegate/oncegate.yaml")
		if out, err := m.Try(t, "dpkg -i oncegate_1.1.0_*.deb"); err == nil {
			t.Errorf("dpkg believes that it is upgraded: %s", out)
		}
		out := m.Run(t, "systemctl show -p MainPID --value oncegate; oncegate healthcheck")
		if !strings.HasPrefix(out, pid) || !strings.Contains(out, `"version":"1.0.0"`) {
			t.Errorf("the old version's process does not go on: %s", out)
		}
		m.Run(t, "cp right.yaml /etc/oncegate/oncegate.yaml")
	})
	m.Run(t, "dpkg --configure -a")
	eventually(t, "the new version is ready", func() bool {
		out, err := m.Try(t, "oncegate healthcheck")
		return err == nil && strings.Contains(out, `"version":"1.1.0"`)
	})
	if now := m.Run(t, "systemctl show -p MainPID --value oncegate"); now == pid {
		t.Error("the old version's process still runs")
	}
	if out := m.Run(t, send); !strings.Contains(out, "replay") {
		t.Errorf("after the upgrade the event is not known any more: %s", out)
	}

	m.Run(t, "dpkg --remove oncegate")
	if out, err := m.Try(t, "systemctl is-active oncegate || pgrep -x oncegate"); err == nil {
		t.Errorf("it still runs after its removal: %s", out)
	}
	m.Run(t, "test -e /etc/oncegate/oncegate.yaml && test -e /var/lib/oncegate/oncegate.db && ! test -e /usr/bin/oncegate")

	m.Run(t, "dpkg -i oncegate_1.1.0_*.deb && systemctl enable --now oncegate")
	eventually(t, "oncegate is ready again", ready)
	if out := m.Run(t, send); !strings.Contains(out, "replay") {
		t.Errorf("installed again, it has forgotten: %s", out)
	}

	m.Run(t, "dpkg --purge oncegate")
	for name := range everything(t, m) {
		if !before[name] {
			t.Errorf("purged, it leaves %s", name)
		}
	}
}

// confined looks at the running process from outside: its user, its rights, and
// what it sees of the machine.
func confined(t *testing.T, m *vps.Machine) {
	status := m.Run(t, `cat /proc/$(systemctl show -p MainPID --value oncegate)/status`)
	for _, line := range []string{"CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(status, line+"\n") {
			t.Errorf("its status does not say %q:\n%s", line, status)
		}
	}
	if strings.Contains(status, "Uid:\t0\t") {
		t.Error("it runs as root")
	}
	// In its own view of the file system: what it may write to, and home.
	const within = `nsenter --target $(systemctl show -p MainPID --value oncegate) --mount -- `
	for _, path := range []string{"/etc/x", "/usr/x", "/var/x", "/var/lib/x", "/opt/x"} {
		if out, err := m.Try(t, within+"touch "+path); err == nil {
			t.Errorf("%s can be written to: %s", path, out)
		}
	}
	m.Run(t, within+"touch /var/lib/oncegate/x && rm /var/lib/oncegate/x")
	if out := m.Run(t, within+"ls /home"); strings.TrimSpace(out) != "" {
		t.Errorf("it sees /home: %s", out)
	}
	if out := m.Run(t, "stat -c %a /var/lib/private/oncegate /var/lib/private/oncegate/oncegate.db"); out != "700\n600\n" {
		t.Errorf("its folder and its file have the modes %q", out)
	}
	if out := m.Run(t, "systemd-analyze security --threshold=20 oncegate"); !strings.Contains(out, "OK") {
		t.Errorf("systemd says: %s", out)
	}
}

// everything lists the names of all files but those that come and go by
// themselves.
func everything(t *testing.T, m *vps.Machine) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	out := m.Run(t, `find / -xdev \( -path /var/lib/dpkg -o -path /var/log -o -path /var/cache -o -path /root -o -path /work -o -path /var/lib/systemd -o -path /tmp -o -path /var/tmp \) -prune -o -print | grep -i oncegate || true`)
	for name := range strings.Lines(out) {
		names[strings.TrimSpace(name)] = true
	}
	return names
}
