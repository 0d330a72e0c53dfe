package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

func (p *program) printDemo(without, with *showing) error {
	a, b := without.figures(), with.figures()
	table := tabwriter.NewWriter(p.stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(name string, left, right any) { fmt.Fprintf(table, "%-32s\t%v\t%v\t\n", name, left, right) }
	row("", "WITHOUT ONCEGATE", "WITH ONCEGATE")
	row("webhook deliveries sent", a.sent, b.sent)
	row("answered 2xx", a.good, b.good)
	row("events they are about", demoEvents, demoEvents)
	row("the shop charged", fmt.Sprintf("%d times", a.charges), fmt.Sprintf("%d times", b.charges))
	row("the shop enrolled", fmt.Sprintf("%d times", a.enrolments), fmt.Sprintf("%d times", b.enrolments))
	row("duplicates answered by oncegate", "-", b.duplicates)
	row("customers charged twice or more", a.twice, b.twice)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, `
What happened: Stripe sends an event again when an answer is late or lost. The
shop charges for every delivery it gets, so without oncegate %d customers were
charged more than once. oncegate checked each signature, took the event's ID, let
the first delivery through, and kept the shop's answer in SQLite. The other %d
deliveries got that same answer back, byte for byte, and never reached the shop.
The shop's code is the same in both columns.
`, a.twice, b.duplicates)
	return err
}

// printDemoHints says where one can look, and how to send more.
func (p *program) printDemoHints(s *stage) error {
	self := selfName()
	_, err := fmt.Fprintf(p.stdout, `
Still running. Look around:

  curl http://%[1]s/                    the shop's ledger, through oncegate
  curl http://%[2]s/                    the ledger of the shop without it
  curl http://%[3]s/metrics             what oncegate counts
  %[4]s claims ls --config %[5]s
  %[4]s claims ls --tag order=evt_demo001 --config %[5]s
  %[4]s claims show evt_demo001 --config %[5]s
  %[4]s stats --config %[5]s

The same from the operators' API, which is what --admin asks:

  curl -H "Authorization: Bearer $(cat %[9]s)" 'http://%[10]s/v1/events?key=evt_demo001'
  %[4]s claims show evt_demo001 --admin http://%[10]s --token-file %[9]s

Send one new event ten times at once:

  %[4]s send --config %[5]s --count 10 --parallel 10

Or by hand, as often as you like; only the first reaches the shop:

  body='{"id":"evt_mine","type":"invoice.paid"}'; t=$(date +%%s)
  v1=$(printf '%%s.%%s' "$t" "$body" | openssl dgst -sha256 -hmac %[6]s | sed 's/.* //')
  curl -i http://%[1]s%[7]s -H "Stripe-Signature: t=$t,v1=$v1" -d "$body"

The log is %[8]s. Ctrl-C ends everything.
`, s.front.Host, s.bare.url.Host, s.health, self, s.config, demoSecret, demoPath, s.log, s.token, s.admin)
	return err
}

// selfName is how this program is called from a shell.
func selfName() string {
	self, err := os.Executable()
	if err != nil || strings.Contains(self, string(filepath.Separator)+"go-build") {
		return "go run ./cmd/oncegate" // its binary is gone when it ends
	}
	if found, err := exec.LookPath(filepath.Base(self)); err == nil && found == self {
		return filepath.Base(self)
	}
	return self
}
