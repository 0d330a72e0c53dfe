package oracle

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"oncegate/internal/delivery"
	"oncegate/verify"
)

// A question is one line to node/oracle.mjs, an answer one line from it.
type question struct {
	ID     int               `json:"id"`
	Oracle string            `json:"oracle"`
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

// startNode installs the SDKs where they are missing, and starts the program.
func startNode(t *testing.T) *node {
	t.Helper()
	if _, err := os.Stat(filepath.Join("node", "node_modules", ".package-lock.json")); err != nil {
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

func (n *node) ask(t *testing.T, q question) answer {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	q.ID = n.last
	line, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	var a answer
	text, err := n.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &a); err != nil || a.ID != q.ID {
		t.Fatalf("%v, answer %d to question %d", err, a.ID, q.ID)
	}
	return a
}

func (b *bench) question(oracle, op string, d *delivery.Delivery) question {
	q := question{Oracle: oracle, Op: op, Method: d.Method, URL: publicURL + d.Target, Header: map[string]string{}, Body: d.Body, Secret: b.secret, Public: b.public, Params: b.params}
	for name, values := range d.Header {
		q.Header[strings.ToLower(name)] = values[0]
	}
	return q
}

// nodeSDKs maps presets to the SDK that is asked about them.
var nodeSDKs = map[string]string{
	"github": "github", "square": "square", "adyen": "adyen", "adyen-platform": "adyen-platform", "paddle": "paddle",
	"shopify": "shopify", "hubspot": "hubspot", "box": "box", "contentful": "contentful", "coinbase-commerce": "coinbase-commerce",
	"amazon-sns": "amazon-sns", "mercado-pago": "mercado-pago", "gocardless": "gocardless", "workos": "workos", "braintree": "braintree",
	"linear": "linear", "dropbox-sign": "dropbox-sign", "discord-interactions": "discord", "discord-events": "discord", "clerk": "clerk",
	"chargebee": "chargebee", "telegram": "telegram", "google-pubsub": "google-pubsub",
}

// TestNodeSDKs: oncegate signs and the SDK verifies; both refuse what was
// changed.
func TestNodeSDKs(t *testing.T) {
	n := startNode(t)
	for name, oracle := range nodeSDKs {
		if name == "google-pubsub" {
			continue // see TestGoogle
		}
		t.Run(name, func(t *testing.T) {
			agree(t, name, func(t *testing.T, b *bench, d *delivery.Delivery) bool {
				a := n.ask(t, b.question(oracle, "verify", d))
				if a.Error != "" && testing.Verbose() {
					t.Logf("the SDK says: %s", a.Error)
				}
				return a.OK
			})
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
			a := n.ask(t, b.question(name, "sign", d))
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

// TestGoogle: Google's library and oncegate on one identity token.
func TestGoogle(t *testing.T) {
	n := startNode(t)
	b := prepare(t, "google-pubsub")
	key, cert := certificate(t)
	b.public = cert
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if b.verifier, err = verify.Compile(b.Verify, verify.Options{Params: b.params, Transport: page(set)}); err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k1"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, c := range map[string]struct {
		change map[string]any
		want   bool
	}{
		"genuine":          {nil, true},
		"another audience": {map[string]any{"aud": "https://other.example"}, false},
		"another issuer":   {map[string]any{"iss": "https://evil.example"}, false},
		"another sender":   {map[string]any{"email": "x@example.test"}, false},
		"expired":          {map[string]any{"exp": now.Add(-time.Hour).Unix()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			claims := map[string]any{"iss": "https://accounts.google.com", "aud": b.params["audience"], "email": b.params["service_account"], "email_verified": true, "iat": now.Unix() - 10, "exp": now.Add(time.Hour).Unix()}
			for claim, value := range c.change {
				claims[claim] = value
			}
			if c.change["exp"] != nil {
				claims["iat"] = now.Add(-2 * time.Hour).Unix()
			}
			token, err := jwt.Signed(signer).Claims(claims).Serialize()
			if err != nil {
				t.Fatal(err)
			}
			d := b.Delivery("/hooks/google")
			d.Arrived = now
			d.Header = http.Header{"Authorization": {"Bearer " + token}}
			ours, theirs := b.ours(d), n.ask(t, b.question("google-pubsub", "verify", d))
			if (ours == nil) != c.want || theirs.OK != c.want {
				t.Errorf("oncegate: %v; Google's library: %v %s", ours, theirs.OK, theirs.Error)
			}
		})
	}
}
