package witness

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParseQuery(t *testing.T) {
	for _, c := range []struct {
		kind kind
		text string
		want string
		args []string
	}{
		{postgres, "SELECT 1 FROM t WHERE a = :a AND b = :b OR a = :a;", "SELECT 1 FROM t WHERE a = $1 AND b = $2 OR a = $1", []string{"a", "b"}},
		{mysql, "SELECT 1 FROM t WHERE a = :a AND b = :b OR a = :a", "SELECT 1 FROM t WHERE a = ? AND b = ? OR a = ?", []string{"a", "b", "a"}},
		{sqlite, "WITH x AS (SELECT :a_1) SELECT 1 FROM x", "WITH x AS (SELECT ?) SELECT 1 FROM x", []string{"a_1"}},
		{postgres, "SELECT x::text, ':a', \":a\", :a::int -- :a\n, /* :a */ 1", "SELECT x::text, ':a', \":a\", $1::int -- :a\n, /* :a */ 1", []string{"a"}},
		{postgres, "SELECT $$ :a $$, $q$ :a $$ $q$, a[1:2], :a", "SELECT $$ :a $$, $q$ :a $$ $q$, a[1:2], $1", []string{"a"}},
		{postgres, `SELECT E'\':a', 'it''s :a', '\', :a`, `SELECT E'\':a', 'it''s :a', '\', $1`, []string{"a"}},
		{mysql, "SELECT '\\':a', `:a`, \"\\\":a\" # :a\n, :a", "SELECT '\\':a', `:a`, \"\\\":a\" # :a\n, ?", []string{"a"}},
		{postgres, "SELECT data ? 'k' FROM t WHERE a = :a", "SELECT data ? 'k' FROM t WHERE a = $1", []string{"a"}},
		{postgres, "(SELECT 1 WHERE 'x' = :a) -- end", "(SELECT 1 WHERE 'x' = $1) -- end", []string{"a"}},
	} {
		q, err := parseQuery(c.text, c.kind)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if q.text != c.want || !slices.Equal(q.args, c.args) {
			t.Errorf("%s\nbecomes %s %q\nnot     %s %q", c.text, q.text, q.args, c.want, c.args)
		}
	}
}

// FuzzParseQuery parses any text: its error is one of ours, and what it replaced
// are the places alone.
func FuzzParseQuery(f *testing.F) {
	f.Add("SELECT ':a', :a -- x\n FROM t", uint8(1))
	f.Add("SELECT $x$ :a $x$, E'\\'' /* */", uint8(1))
	f.Add("SELECT `a` # :b\n, :b", uint8(2))
	f.Fuzz(func(t *testing.T, text string, k uint8) {
		q, err := parseQuery(text, kind(k%3+1))
		if err != nil {
			if !errors.Is(err, errNotOneSelect) && !errors.Is(err, errOwnPlace) && !errors.Is(err, errUnended) {
				t.Errorf("%v", err)
			}
			return
		}
		for _, name := range q.args {
			if !isName(name) {
				t.Errorf("%q is no name", name)
			}
		}
		if strings.Contains(strings.ToLower(q.text), "$0") && !strings.Contains(strings.ToLower(text), "$0") {
			t.Errorf("%q becomes %q", text, q.text)
		}
	})
}
