package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oncegate/internal/testenv"
)

const runbook = "../../docs/runbook.md"

// A page's command and the section that it stands in.
type command struct{ section, text string }

// commandsOf are the commands of a page: the lines of its sh blocks, and what stands in
// backticks and begins with a program's name.
func commandsOf(t *testing.T, page string) (all []command) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	inline := regexp.MustCompile("`((?:oncegate|curl|systemctl|timedatectl|kubectl) [^`]+)`")
	section, block := "", false
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\r\n", "\n")) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			block = line == "```sh"
		case block:
			line, _, _ = strings.Cut(line, " #")
			all = append(all, command{section, strings.TrimSpace(line)})
		case strings.HasPrefix(line, "## "):
			section = line[3:]
		default:
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				all = append(all, command{section, m[1]})
			}
		}
	}
	return all
}

// A night is an oncegate at three in the morning: events in every state, in a folder
// with its configuration.
type night struct {
	served
	dir, path string
	answer    chan struct{}       // lets the app answer what hangs
	next      map[string][]string // keys that a verb can be said of, by the verb
}

func newNight(t *testing.T) *night {
	n := &night{served: served{ended: make(chan error, 1)}, dir: testenv.Dir(t), answer: make(chan struct{}), next: map[string][]string{}}
	app := httptest.NewServer(http.HandlerFunc(n.app))
	t.Cleanup(app.Close)
	t.Cleanup(func() { close(n.answer) })
	n.url, n.health = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t)), fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	n.adminURL = fmt.Sprintf("127.0.0.1:%d", testenv.Port(t))
	n.file = filepath.Join(n.dir, "oncegate.yaml")
	writeFile(t, n.file, fmt.Sprintf(`version: 1
listen: %s
health: %s
admin: %s
state_dir: %s
upstream: %s
app_limit: 60s
routes:
  stripe:
    path: /stripe/webhook
    provider: stripe
    secrets: whsec_test
    record: unsettled
    on_unknown: hold
    on_mismatch: refuse
    retries_for: 1s
    patience: 1s
    tags: {order: {json: /data/object/metadata/order_id}}
`, n.url, n.health, n.adminURL, n.dir, app.URL))
	n.start(t)
	n.path = filepath.Dir(binary(t)) + string(filepath.ListSeparator) + os.Getenv("PATH")

	send := func(event, order string, want int) {
		t.Helper()
		(&replica{served: served{url: n.url}}).send(t, signedEvent(event, order, "whsec_test"), want)
	}
	send("evt_1NxV", "4471", 200)
	send("evt_1NxV", "4471", 200)
	send("evt_1NxV", "4472", 409)
	send("evt_4471_part", "1", 200)
	for i := range 6 {
		send(fmt.Sprint("evt_unknown", i), "5", 500)
		send(fmt.Sprint("evt_released", i), "6", 404)
		n.next["done"] = append(n.next["done"], fmt.Sprint("evt_unknown", i))
		n.next["rerun"] = append(n.next["rerun"], fmt.Sprint("evt_released", i))
	}
	for i := range 6 {
		send(fmt.Sprint("evt_held", i), "7", 500)
		n.next["reopen"] = append(n.next["reopen"], fmt.Sprint("evt_held", i))
	}
	for i := range 2 {
		event := fmt.Sprint("evt_hangs", i)
		go func() { // it is cut, and gets what it gets
			if resp, err := http.DefaultClient.Do(signedEvent(event, "8", "whsec_test")(n.url)); err == nil {
				resp.Body.Close()
			}
		}()
		n.next["release"] = append(n.next["release"], event)
	}
	(&replica{served: served{url: n.url}}).send(t, signedEvent("evt_forged", "9", "another"), http.StatusUnauthorized)
	n.evidenced(t, 3+1+18)
	return n
}

// app fails, refuses, or hangs the first time, as the event's ID says.
func (n *night) app(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a broken one is the test's own
	var event struct{ ID string }
	_ = json.Unmarshal(body, &event)
	switch first := r.Header.Get("Oncegate-Attempt") == "1"; {
	case first && (strings.HasPrefix(event.ID, "evt_unknown") || strings.HasPrefix(event.ID, "evt_held")):
		http.Error(w, "SQLSTATE[HY000] [2002] Connection refused", http.StatusInternalServerError)
	case first && strings.HasPrefix(event.ID, "evt_released"):
		http.Error(w, "no such customer", http.StatusNotFound)
	case first && strings.HasPrefix(event.ID, "evt_hangs"):
		select {
		case <-n.answer:
		case <-r.Context().Done():
		}
	default:
		_, _ = io.WriteString(w, "charged")
	}
}

// sh runs a command as it stands on the page, but for what is this machine's.
func (n *night) sh(t *testing.T, text string) (out string, code int) {
	t.Helper()
	text = strings.NewReplacer(
		"/var/lib/oncegate", n.dir, "127.0.0.1:9181", n.adminURL, "https://shop.example", "http://"+n.url,
	).Replace(text)
	cmd := exec.Command("sh", "-c", text)
	cmd.Dir, cmd.Env = n.dir, append(os.Environ(), "PATH="+n.path)
	both, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(both), cmd.ProcessState.ExitCode()
}

// key is an event that the next verb can be said of.
func (n *night) key(t *testing.T, verb string) string {
	t.Helper()
	if verb == "show" {
		return "evt_unknown0"
	}
	if len(n.next[verb]) == 0 {
		t.Fatalf("there is no event left for %s", verb)
	}
	key := n.next[verb][0]
	n.next[verb] = n.next[verb][1:]
	if verb == "release" {
		n.next["done"] = append([]string{key}, n.next["done"]...) // as the page goes on
	}
	return key
}

// What a command of the page must print.
var prints = map[string]string{
	"claims ls": `(?m)^stripe +evt_`, "claims show": `event evt_\w+ of stripe: `, "stats": `(?m)^stripe +stripe +\d+`,
	"claims done": `: now done`, "claims reopen": `: now released|nothing was changed; --yes says reopen of \d+ claims`,
	"claims rerun": `attempt 2 ended as fresh, status 200`, "claims release": `: now unknown`,
	"prune": `removed \d+ claims?`, "doctor": `(?m)^ok `, "check": `stripe`, "providers": `(?i)patience|waits`, "send": `200 +fresh`,
	"explain": `evt_`, "healthcheck": ``, "curl": `"result":"unverified"`,
}

// What an operator is told to do at three in the morning can be done as it stands
// there: each command of the runbook, in its order.
func TestRunbookCommands(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	if out, code := n.sh(t, "oncegate send --route stripe --dry-run > kept.http"); code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	elsewhere := []string{"systemctl", "timedatectl", "kubectl"}
	commands := commandsOf(t, runbook)
	if len(commands) < 25 {
		t.Fatalf("only %d commands were found", len(commands))
	}
	done := map[string]bool{}
	for i := 0; i < len(commands); i++ {
		c := commands[i]
		words := strings.Fields(c.text)
		if slices.Contains(elsewhere, words[0]) || done[c.text] && !strings.Contains(c.text, " KEY") {
			continue
		}
		done[c.text] = true
		name := words[0]
		if name == "oncegate" {
			name = words[1]
			if name == "claims" {
				name += " " + words[2]
			}
		}
		if len(words) > 3 && words[3] == "KEY" {
			c.text = strings.Replace(c.text, "KEY", n.key(t, words[2]), 1)
		}
		t.Run(c.section+": "+c.text, func(t *testing.T) {
			out, code := n.sh(t, c.text)
			want, known := prints[name]
			if code != 0 || !known || !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("exit code %d, %s", code, out)
			}
			if strings.Contains(c.text, "--yes") {
				return
			}
			if strings.Contains(out, "nothing was changed; --yes") { // which the page says too, at the end
				commands = append(commands, command{c.section, c.text + " --yes"})
			}
		})
	}
	out, _ := n.sh(t, "oncegate claims ls --state unknown")
	if !strings.Contains(out, "no claims") {
		t.Errorf("undecided at the end: %s", out)
	}
}

// What the page quotes from the log is what the program says.
func TestRunbookQuotes(t *testing.T) {
	text, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, pattern := range []string{"*.go", "../../internal/*/*.go", "../../lock/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(code)
		}
	}
	quotes := 0
	for _, m := range regexp.MustCompile("`([a-z][a-z' ,:]+(?:\\.\\.\\. [a-z ]+)?)`").FindAllStringSubmatch(string(text), -1) {
		if len(strings.Fields(m[1])) < 4 || strings.HasPrefix(m[1], "oncegate ") {
			continue
		}
		quotes++
		for part := range strings.SplitSeq(m[1], "...") {
			if !strings.Contains(source.String(), strings.TrimSpace(part)) {
				t.Errorf("the program never says %q", m[1])
			}
		}
	}
	if quotes < 3 {
		t.Errorf("only %d quotes were found", quotes)
	}
}
