package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oncegate/internal/config"
	"oncegate/internal/forward"
	"oncegate/internal/telemetry"
	"oncegate/keyextract"
	"oncegate/lock"
	"oncegate/verify"
)

// answers is the table of what is refused, once more, by hand. The name is how
// the package that exports the error calls it; "" is for one that has none.
var answers = []struct {
	name   string
	err    error
	word   telemetry.Result
	status int
	again  bool
	class  telemetry.ErrorClass
	policy string // that may have it forwarded
}{
	{"proxy.ErrMethod", ErrMethod, "malformed", 405, false, "request", ""},
	{"proxy.ErrTooLarge", ErrTooLarge, "malformed", 413, false, "request", ""},
	{"proxy.ErrIncomplete", ErrIncomplete, "malformed", 400, false, "request", ""},
	{"proxy.ErrHopNamed", ErrHopNamed, "malformed", 400, false, "request", ""},
	{"proxy.ErrTarget", ErrTarget, "malformed", 400, false, "request", ""},
	{"proxy.ErrOverload", ErrOverload, "overload", 503, true, "", "on_overload"},
	{"proxy.ErrBusy", ErrBusy, "busy", 503, true, "", ""},
	{"proxy.ErrSettling", ErrSettling, "settling", 503, true, "", ""},
	{"proxy.ErrHeld", ErrHeld, "held", 503, true, "", ""},
	{"proxy.ErrMismatch", ErrMismatch, "mismatch", 409, false, "request", ""},
	{"proxy.ErrStopping", ErrStopping, "overload", 503, true, "", "on_overload"},
	{"proxy.ErrStore", ErrStore, "unavailable", 503, true, "store", "on_store_outage"},
	{"lock.ErrUnavailable", lock.ErrUnavailable, "unavailable", 503, true, "store", "on_store_outage"},
	{"lock.ErrUnfit", lock.ErrUnfit, "unavailable", 503, true, "store", "on_store_outage"},
	{"lock.ErrProven", lock.ErrProven, "unavailable", 503, true, "store", ""},
	{"lock.ErrSealed", lock.ErrSealed, "unavailable", 503, true, "store", ""},
	{"lock.ErrFenced", lock.ErrFenced, "busy", 503, true, "", ""},
	{"verify.Missing", &verify.Error{Kind: verify.Missing}, "unverified", 401, false, "request", ""},
	{"verify.Malformed", &verify.Error{Kind: verify.Malformed}, "unverified", 401, false, "request", ""},
	{"verify.Mismatch", &verify.Error{Kind: verify.Mismatch}, "unverified", 401, false, "request", ""},
	{"verify.Stale", &verify.Error{Kind: verify.Stale}, "unverified", 401, false, "request", ""},
	{"verify.Unavailable", &verify.Error{Kind: verify.Unavailable}, "unavailable", 503, true, "request", ""},
	{"keyextract.ErrMissing", &keyextract.Error{Kind: keyextract.Missing}, "unkeyed", 422, false, "request", "on_missing_key"},
	{"keyextract.ErrMalformed", &keyextract.Error{Kind: keyextract.Malformed}, "malformed", 400, false, "request", ""},
	{"forward.ErrRequestBody", forward.ErrRequestBody, "malformed", 400, false, "request", ""},
	{"forward.ErrLengthRequired", forward.ErrLengthRequired, "malformed", 411, false, "request", ""},
	{"forward.ErrNoRoom", &forward.Error{Kind: forward.Invalid, Err: forward.ErrNoRoom}, "overload", 503, true, "", ""},
	{"forward.Invalid", &forward.Error{Kind: forward.Invalid}, "malformed", 400, false, "request", ""},
	{"forward.Unreached", &forward.Error{Kind: forward.Unreached}, "unreached", 502, true, "refused", ""},
	{"forward.Broken", &forward.Error{Kind: forward.Broken}, "unknown", 502, true, "broken", ""},
	{"forward.Timeout", &forward.Error{Kind: forward.Timeout}, "unknown", 504, true, "timeout", ""},
	{"forward.Upgraded", &forward.Error{Kind: forward.Upgraded}, "unknown", 502, true, "upgraded", ""},
	{"", &forward.Error{Kind: forward.Broken, Err: forward.ErrRequestBody}, "malformed", 400, false, "request", ""},
	{"", &forward.Error{Kind: forward.Broken, Err: context.Canceled}, "unknown", 502, true, "canceled", ""},
	{"", &forward.Error{Kind: forward.Unreached, Err: context.Canceled}, "unreached", 502, true, "canceled", ""},
	{"", &forward.Error{Kind: forward.Unreached, Err: context.DeadlineExceeded}, "unreached", 502, true, "timeout", ""},
	{"", &forward.Error{Kind: forward.Unreached, Err: os.ErrDeadlineExceeded}, "unreached", 502, true, "timeout", ""},
	{"", &forward.Error{Kind: forward.Unreached, Err: &net.DNSError{}}, "unreached", 502, true, "dns", ""},
	{"", &forward.Error{Kind: forward.Unreached, Err: &tls.CertificateVerificationError{}}, "unreached", 502, true, "tls", ""},
	{"", &forward.Error{Kind: forward.Unreached, Err: tls.AlertError(40)}, "unreached", 502, true, "tls", ""},
	{"", &forward.Error{Kind: forward.Unreached, Err: tls.RecordHeaderError{}}, "unreached", 502, true, "tls", ""},
	{"", fmt.Errorf("%w: %w", ErrStore, lock.ErrSealed), "unavailable", 503, true, "store", ""},
	{"", fmt.Errorf("%w: %w", ErrStore, context.DeadlineExceeded), "unavailable", 503, true, "store", "on_store_outage"},
	{"", errors.New("something that nobody thought of"), "unavailable", 503, true, "request", ""},
}

func TestAnswers(t *testing.T) {
	for _, want := range answers {
		t.Run(fmt.Sprintf("%s %v", want.name, want.err), func(t *testing.T) {
			err := fmt.Errorf("outer: %w", fmt.Errorf("inner: %w", want.err))
			got := rowOf(err)
			if got.word != want.word || got.status != want.status || got.again != want.again || got.class != want.class {
				t.Errorf("got %+v", got)
			}
			for _, policy := range []string{"", "on_missing_key", "on_overload", "on_store_outage"} {
				r := &route{Route: &config.Route{OnMissingKey: "refuse", OnOverload: "refuse", OnStoreOutage: "refuse"}}
				switch policy {
				case "on_missing_key":
					r.OnMissingKey = "forward"
				case "on_overload":
					r.OnOverload = "forward"
				case "on_store_outage":
					r.OnStoreOutage = "forward"
				}
				if forwards := got.unless != nil && got.unless(r); forwards != (policy != "" && policy == want.policy) {
					t.Errorf("with %q: forward, forwarded: %v", policy, forwards)
				}
			}
			w := httptest.NewRecorder()
			got.write(w, got.status, 90*time.Second, false)
			again := ""
			if want.again {
				again = "90"
			}
			if w.Code != want.status || w.Header().Get("Retry-After") != again || w.Header().Get(resultHeader) != string(want.word) {
				t.Errorf("written: %d %v", w.Code, w.Header())
			}
			if b := w.Body.String(); !strings.HasPrefix(b, `{"type":"about:blank","title":"`+http.StatusText(want.status)+`"`) || !strings.Contains(b, `"result":"`+string(want.word)+`"`) || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("written: %s", b)
			}
			w = httptest.NewRecorder()
			got.write(w, got.status, 90*time.Second, true)
			if w.Code != want.status || w.Body.Len() > 0 || w.Header().Get("Content-Length") != "0" || w.Header().Get("Content-Type") != "" || w.Header().Get(resultHeader) != string(want.word) {
				t.Errorf("written bare: %d %v %s", w.Code, w.Header(), w.Body)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	ask := &lock.Ask{Payload: lock.Digest{1}}
	for verdict, want := range map[lock.Verdict]error{
		lock.Busy: ErrBusy, lock.Settling: ErrSettling, lock.Held: ErrHeld, lock.Mismatch: ErrMismatch,
		lock.Closing: ErrStopping, lock.Unavailable: ErrStore,
	} {
		err := refusal(&lock.Decision{Verdict: verdict, Err: lock.ErrUnfit}, ask)
		if !errors.Is(err, want) {
			t.Errorf("verdict %d is %v", verdict, err)
		}
		if verdict == lock.Unavailable && !errors.Is(err, lock.ErrUnfit) {
			t.Errorf("the cause is lost: %v", err)
		}
	}
}

// notOfDeliveries are exported errors that no delivery can meet.
var notOfDeliveries = []string{
	"verify.ErrCannotSign",                       // deliveries that are sent later
	"verify.ErrOffline",                          // explain, which asks nobody
	"lock.ErrJournalFull", "lock.ErrJournalBusy", // the journal, which the Gate keeps behind its settles
	"lock.ErrStale", "lock.ErrNoClaim", "lock.ErrRefused", "lock.ErrNotYet", // operators' verbs
}

// Every error that these packages export has a row in the table.
func TestEveryErrorHasARow(t *testing.T) {
	known := map[string]bool{}
	for _, a := range answers {
		known[a.name] = true
	}
	for _, name := range notOfDeliveries {
		known[name] = true
	}
	for pkg, kinds := range map[string]string{".": "", "../lock": "", "../verify": "Kind", "../keyextract": "", "../internal/forward": "Kind"} {
		for _, file := range parseDir(t, pkg) {
			ast.Inspect(file, func(n ast.Node) bool {
				decl, ok := n.(*ast.GenDecl)
				if !ok {
					return true
				}
				kind := ""
				for _, spec := range decl.Specs {
					v, ok := spec.(*ast.ValueSpec)
					if !ok {
						continue
					}
					if id, ok := v.Type.(*ast.Ident); ok {
						kind = id.Name
					}
					for _, name := range v.Names {
						isKind := decl.Tok == token.CONST && kinds != "" && kind == kinds
						isError := decl.Tok == token.VAR && strings.HasPrefix(name.Name, "Err")
						if (isKind || isError) && name.IsExported() && !known[file.Name.Name+"."+name.Name] {
							t.Errorf("%s.%s has no row", file.Name.Name, name.Name)
						}
					}
				}
				return true
			})
		}
	}
}

// No other file than answers.go names the status of a failure.
func TestStatusesStandInOnePlace(t *testing.T) {
	constant := regexp.MustCompile(`^Status[A-Z]`)
	fine := []string{"StatusOK", "StatusSwitchingProtocols", "StatusNoContent", "StatusNotModified", "StatusText", "Statuses"}
	for name, file := range parseDir(t, ".") {
		if name == "answers.go" {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "http" && constant.MatchString(n.Sel.Name) && !slices.Contains(fine, n.Sel.Name) {
					t.Errorf("%s names http.%s", name, n.Sel.Name)
				}
			case *ast.BasicLit:
				if v, err := strconv.Atoi(n.Value); err == nil && v >= 400 && v < 600 {
					t.Errorf("%s names %d", name, v)
				}
			}
			return true
		})
	}
}

// parseDir parses the files of a package that are no tests, by name.
func parseDir(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if files[e.Name()], err = parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return files
}
