package oracle

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"oncegate/internal/delivery"
)

// A question is one line to node/oracle.mjs, an answer one line from it.
type question struct {
	ID     int               `json:"id"`
	Oracle string            `json:"oracle"`
	Preset string            `json:"preset"`
	Op     string            `json:"op"`
	Method string            `json:"method"`
	URL    string            `json:"url"`
	Header map[string]string `json:"header"`
	Body   []byte            `json:"body"`
	Secret string            `json:"secret"`
	Public string            `json:"public"`
	Params map[string]string `json:"params"`
}

type answer struct {
	ID     int               `json:"id"`
	OK     bool              `json:"ok"`
	Error  string            `json:"error"`
	Header map[string]string `json:"header"`
	Body   []byte            `json:"body"`
}

// node is the program that holds the SDKs for Node. One question at a time.
type node struct {
	mu   sync.Mutex // guards the pipes
	in   io.WriteCloser
	out  *bufio.Reader
	last int
}

// startNode installs the SDKs where they are missing or of other versions, and
// starts the program.
func startNode(t *testing.T) *node {
	t.Helper()
	wanted, err := os.Stat(filepath.Join("node", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if there, err := os.Stat(filepath.Join("node", "node_modules", ".package-lock.json")); err != nil || there.ModTime().Before(wanted.ModTime()) {
		install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		install.Dir = "node"
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("installing the SDKs: %v\n%s", err, out)
		}
	}
	cmd := exec.Command("node", "oracle.mjs")
	cmd.Dir, cmd.Stderr = "node", os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := &node{in: in, out: bufio.NewReaderSize(out, 1<<20)}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// ask asks all the questions, and returns an answer to each. Questions are
// written while answers are read, since neither pipe holds them all.
func (n *node) ask(t *testing.T, questions ...question) []answer {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	first := n.last + 1
	n.last += len(questions)
	written := make(chan error, 1)
	go func() {
		out := bufio.NewWriterSize(n.in, 1<<16)
		lines := json.NewEncoder(out)
		for i := range questions {
			questions[i].ID = first + i
			if err := lines.Encode(&questions[i]); err != nil {
				written <- err
				return
			}
		}
		written <- out.Flush()
	}()
	answers := make([]answer, len(questions))
	for i := range answers {
		text, err := n.out.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &answers[i]); err != nil || answers[i].ID != first+i {
			t.Fatalf("%v, answer %d to question %d", err, answers[i].ID, first+i)
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	return answers
}

func (b *bench) question(oracle, op string, d *delivery.Delivery) question {
	q := question{Oracle: oracle, Preset: b.Name, Op: op, Method: d.Method, URL: publicURL + d.Target, Header: map[string]string{}, Body: d.Body, Secret: b.secret, Public: b.public, Params: b.params}
	for name, values := range d.Header {
		q.Header[strings.ToLower(name)] = latin1(values[0])
	}
	return q
}

// verifier asks an oracle about deliveries.
func (n *node) verifier(oracle string) sdk {
	return func(t *testing.T, b *bench, all []*delivery.Delivery) []bool {
		t.Helper()
		questions := make([]question, len(all))
		for i, d := range all {
			questions[i] = b.question(oracle, "verify", d)
		}
		verdicts := make([]bool, len(all))
		for i, a := range n.ask(t, questions...) {
			verdicts[i] = a.OK
		}
		return verdicts
	}
}

// latin1 is a header's value as Node hands it to programs: a character a byte.
func latin1(value string) string {
	text := make([]rune, len(value))
	for i := range text {
		text[i] = rune(value[i])
	}
	return string(text)
}

// nodeSDKs maps presets to the SDK that is asked about them.
var nodeSDKs = map[string]string{
	"github": "github", "square": "square", "adyen": "adyen", "adyen-platform": "adyen-platform", "paddle": "paddle",
	"shopify": "shopify", "hubspot": "hubspot", "box": "box", "contentful": "contentful", "coinbase-commerce": "coinbase-commerce",
	"amazon-sns": "amazon-sns", "mercado-pago": "mercado-pago", "gocardless": "gocardless", "workos": "workos", "braintree": "braintree",
	"linear": "linear", "dropbox-sign": "dropbox-sign", "discord-interactions": "discord", "discord-events": "discord", "clerk": "clerk",
	"chargebee": "chargebee", "telegram": "telegram", "mollie": "mollie", "zoom": "zoom", "meta": "meta", "paystack": "paystack",
	"lemonsqueezy": "tern", "woocommerce": "tern", "sentry": "tern",
}

// TestNodeSDKs: oncegate signs and the SDK verifies; both refuse what was
// changed.
func TestNodeSDKs(t *testing.T) {
	n := startNode(t)
	for name, oracle := range nodeSDKs {
		t.Run(name, func(t *testing.T) {
			agree(t, name, nodeDifferences[name], n.verifier(oracle))
		})
	}
}

// TestNodeSDKsSign: the SDK signs or builds and oncegate verifies.
func TestNodeSDKsSign(t *testing.T) {
	n := startNode(t)
	for _, name := range []string{"github", "contentful", "braintree", "adyen", "coinbase-commerce", "workos"} {
		t.Run(name, func(t *testing.T) {
			b := prepare(t, name)
			d := b.Delivery("/hooks/" + name)
			d.Arrived = time.Now()
			a := n.ask(t, b.question(name, "sign", d))[0]
			if !a.OK {
				t.Fatal(a.Error)
			}
			for name, value := range a.Header {
				d.Header.Set(name, value)
			}
			if a.Body != nil {
				d.Body = a.Body
			}
			accepted(t, b, d)
		})
	}
}
