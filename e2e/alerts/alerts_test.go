package alerts

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const root = "../.."

// An expression and where it stands.
type expression struct{ where, text string }

func alertRules(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	groups, errs := rulefmt.ParseFile(filepath.Join(root, "deploy/prometheus/oncegate.rules.yml"), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.FailNow()
	}
	return groups
}

func expressions(t *testing.T) (all []expression) {
	t.Helper()
	for _, g := range alertRules(t).Groups {
		for _, r := range g.Rules {
			all = append(all, expression{"alert " + r.Alert, r.Expr})
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy/grafana/oncegate.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$route", ".*").Replace(target.Expr)
			all = append(all, expression{"panel " + p.Title, expr})
		}
	}
	if len(all) < 40 {
		t.Fatalf("only %d expressions were found", len(all))
	}
	return all
}

// Labels that Prometheus adds to what it scrapes, the namespace in Kubernetes.
var scraped = []string{"instance", "job", "namespace", "__name__"}

// Every metric in every expression is one that a busy oncegate shows, with all
// labels by which it is selected or grouped.
func TestExpressions(t *testing.T) {
	shown := scrapeDemo(t)
	p := parser.NewParser(parser.Options{})
	for _, e := range expressions(t) {
		expr, err := p.ParseExpr(e.text)
		if err != nil {
			t.Errorf("%s: %v", e.where, err)
			continue
		}
		parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
			s, ok := n.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			needed := slices.Clone(scraped[:0])
			for _, m := range s.LabelMatchers {
				needed = append(needed, m.Name)
			}
			needed = append(needed, grouping(n, path)...)
			has, ok := shown[s.Name]
			if !ok {
				t.Errorf("%s: there is no metric %s", e.where, s.Name)
			}
			for _, name := range needed {
				if ok && !slices.Contains(scraped, name) && !slices.Contains(has, name) {
					t.Errorf("%s: %s has no label %s", e.where, s.Name, name)
				}
			}
			for _, m := range s.LabelMatchers {
				if m.Name == "result" && m.Type == labels.MatchEqual && !strings.Contains(resultWords(t), "`"+m.Value+"`") {
					t.Errorf("%s: there is no result %s", e.where, m.Value)
				}
			}
			return nil
		})
	}
}

// grouping returns the labels by which what is above a selector groups it. On the
// right of an `and` a selector gives no labels but those of its `on`.
func grouping(n parser.Node, path []parser.Node) (names []string) {
	below := n
	for _, above := range slices.Backward(path) {
		switch a := above.(type) {
		case *parser.AggregateExpr:
			names = append(names, a.Grouping...)
		case *parser.BinaryExpr:
			if a.Op == parser.LAND && below == a.RHS {
				return append(names, a.VectorMatching.MatchingLabels...)
			}
		}
		below = above
	}
	return names
}

func resultWords(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every alert leads to a section of the runbook, and every section to an alert.
func TestRunbook(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (Oncegate\w+)$`).FindAllStringSubmatch(string(text), -1) {
		sections[m[1]] = true
	}
	for _, g := range alertRules(t).Groups {
		for _, r := range g.Rules {
			if !sections[r.Alert] {
				t.Errorf("%s has no section in docs/runbook.md", r.Alert)
			}
			delete(sections, r.Alert)
			if want := "docs/runbook.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
				t.Errorf("%s leads to %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
			}
			if s := r.Labels["severity"]; s != "page" && s != "ticket" {
				t.Errorf("%s has the severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" {
				t.Errorf("%s says nothing", r.Alert)
			}
		}
	}
	for left := range sections {
		t.Errorf("docs/runbook.md has a section %s, and there is no such alert", left)
	}
}

// scrapeDemo builds the command, runs its demo, and returns the labels of each
// series that it shows then, by name.
func scrapeDemo(t *testing.T) map[string][]string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "oncegate")
	build := exec.Command("go", "build", "-o", binary, "./cmd/oncegate")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	demo := exec.Command(binary, "demo")
	demo.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = demo.Process.Signal(syscall.SIGINT) // it may have ended
		if err := demo.Wait(); err != nil {
			t.Errorf("demo: %v", err)
		}
	})
	at := regexp.MustCompile(`http://\S+/metrics`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if url := at.FindString(lines.Text()); url != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return series(t, url)
		}
	}
	t.Fatal("the demo does not say where its metrics are")
	return nil
}

func series(t *testing.T, url string) map[string][]string {
	t.Helper()
	var last error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		shown, err := scrape(url)
		_, figures := shown["oncegate_claims"]
		_, evidence := shown["oncegate_evidence_purge_last_success_timestamp_seconds"]
		if figures && evidence {
			return shown
		}
		last = err
	}
	t.Fatalf("what the background finds out never came: %v", last)
	return nil
}

func scrape(url string) (map[string][]string, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	shown := map[string][]string{}
	for name, f := range families {
		for _, m := range f.Metric {
			var has []string
			for _, l := range m.Label {
				has = append(has, l.GetName())
			}
			if m.Histogram == nil {
				shown[name] = append(shown[name], has...)
				continue
			}
			shown[name+"_bucket"] = append(shown[name+"_bucket"], append(has, "le")...)
			shown[name+"_count"] = append(shown[name+"_count"], has...)
			shown[name+"_sum"] = append(shown[name+"_sum"], has...)
		}
		if _, ok := shown[name]; !ok && len(f.Metric) > 0 && f.Metric[0].Histogram == nil {
			shown[name] = []string{}
		}
	}
	return shown, nil
}
