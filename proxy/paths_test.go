package proxy

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPathForms(t *testing.T) {
	const hook = "/stripe/webhook"
	tests := []struct{ target, want string }{
		{"/stripe/webhook", hook},
		{"/stripe/webhook?a=b", hook},
		{"/stripe/webhook#x", hook},
		{"/stripe/webhook#?x", hook},
		{"/stripe/webhook/", hook},
		{"/stripe/webhook//?a", hook},
		{"//stripe/webhook", hook},
		{"/stripe//webhook", hook},
		{"/stripe%2Fwebhook", hook},
		{"/stripe%2fwebhook", hook},
		{"/%73tripe/webhook", hook},
		{"/stripe/webhoo%6B", hook},
		{"/x/../stripe/webhook", hook},
		{"/x/%2e%2e/stripe/webhook", hook},
		{"/x%2f..%2fstripe/webhook", hook},
		{"/./stripe/./webhook/.", hook},
		{"/../../stripe/webhook", hook},
		{"/stripe/webhook/x/..", hook},
		{"/stripe/webhook%00", hook},
		{"/stripe/webhook%00.txt", hook},
		{"/index.php/stripe/webhook", hook},
		{"/index.php/stripe/webhook/", hook},
		{"//index.php//stripe/webhook", hook},
		{"/%69ndex.php/stripe/webhook", hook},
		{"/index.php%2Fstripe/webhook", hook},
		{"/index.phpstripe/webhook", hook},
		{"http://shop.example/stripe/webhook", hook},
		{"HTTP://shop.example:8443/stripe/webhook?x", hook},
		{"http:///stripe/webhook", hook},
		{"http:/stripe/webhook", hook},
		{"http:stripe/webhook", hook},
		{"stripe/webhook", hook},
		{"stripe/webhook?a=http://h/x", hook},
		{"http://shop.example", "/"},
		{"http://shop.example?/stripe/webhook", "/"},
		{"/", "/"},
		{"", "/"},
		{"*", "/*"},
		{"/index.php", "/"},
		{"/index.php/", "/"},
		{"/STRIPE/webhook", "/STRIPE/webhook"},
		{"/INDEX.PHP/stripe/webhook", "/INDEX.PHP/stripe/webhook"},
		{"/stripe%252Fwebhook", "/stripe%2Fwebhook"},
		{"/stripe/webhook;a=b", "/stripe/webhook;a=b"},
		{"/stripe/webhook%3Fa", "/stripe/webhook?a"},
		{"/stripe/webhook%23a", "/stripe/webhook#a"},
		{`/stripe\webhook`, `/stripe\webhook`},
		{"/stripe/webhook%zz", "/stripe/webhook%zz"},
		{"/stripe/webhook%2", "/stripe/webhook%2"},
		{"/stripe/webhook.", "/stripe/webhook."},
		{"/stripe/webhook%20", "/stripe/webhook "},
		{"/.well-known/x", "/.well-known/x"},
		{"/x?/../stripe/webhook", "/x"},
		{"/x#/../stripe/webhook", "/x"},
	}
	table := routeTable[int]{hook: 7}
	for _, tt := range tests {
		t.Run("B48 "+tt.target, func(t *testing.T) {
			if got := canonicalPath(tt.target); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			if n, ok := table.match(tt.target); ok != (tt.want == hook) || ok && n != 7 {
				t.Fatalf("matched: %v", ok)
			}
		})
	}
}

// TestPathsInFolders: apps that have a folder or a script of their own.
func TestPathsInFolders(t *testing.T) {
	const hook, shop, script = "/stripe/webhook", "/shop/hook", "/callback/stripe.php"
	tests := []struct{ target, want string }{
		{"/public/stripe/webhook", hook},
		{"/public/index.php/stripe/webhook", hook},
		{"/public/index.phpstripe/webhook", hook},
		{"/x/public/index.php/stripe/webhook", hook},
		{"/x/%2e%2e/publi%63/index%2Ephp//stripe/webhook/?a", hook},
		{"/any/index.phpg/stripe/webhook", hook},
		{"/anyindex.php/stripe/webhook", hook},
		{"/anything/index.phpstripe/webhook", hook},
		{"/index.phpanystripe/webhook", hook},
		{"/shopindex.php/hook", shop},
		{"/shop/index.php/hook", shop},
		{"/shop/index.phphook", shop},
		{"/x/shop/index.php/hook", shop},
		{"/shop/hook/index.php", shop},
		{"/index.php/shop/index.php/hook", shop},
		{"/callback/stripe.php/", script},
		{"/callback/stripe.php/x", script},
		{"/callback/stripe.php%2Fx/y.php/z?a", script},
		{"/public/callback/stripe.php", script},
		{"/index.php/shop/hook", shop},

		{"/publicstripe/webhook", ""},
		{"/public", ""},
		{"/x/stripe/webhook", ""},
		{"/shop/index.php/other", ""},
		{"/shop/index.php", ""},
		{"/index.php", ""},
		{"/hook", ""},
		{"/shop/index.php/x/hook", ""},
		{"/callback/stripe.phpx/y", ""},
	}
	table := routeTable[string]{hook: hook, shop: shop, script: script}
	for _, tt := range tests {
		t.Run("B48 "+tt.target, func(t *testing.T) {
			if got, _ := table.match(tt.target); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("the longest", func(t *testing.T) {
		table := routeTable[int]{"/hook": 1, "/shop/hook": 2, "/a/shop/hook": 3}
		if got, _ := table.match("/shop/index.php/hook"); got != 2 {
			t.Fatal(got)
		}
	})
}

func TestCanonicalPathCostsNothing(t *testing.T) {
	table := routeTable[int]{"/stripe/webhook": 7}
	if n := testing.AllocsPerRun(100, func() { table.match("/products/42/reviews?page=2") }); n != 0 {
		t.Fatalf("%v allocations for an ordinary target", n)
	}
}

var (
	beforePath = regexp.MustCompile(`^[^/?#:]*:(//[^/?#]*)?`)
	afterPath  = regexp.MustCompile(`(?s)[?#].*$`)
	escape     = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
	afterNUL   = regexp.MustCompile(`(?s)\x00.*$`)
)

// dumbPath is canonicalPath again, written to be read: no short cuts, one rule
// after the other.
func dumbPath(target string) string {
	p := target
	if !strings.HasPrefix(p, "/") {
		p = beforePath.ReplaceAllString(p, "")
	}
	p = afterPath.ReplaceAllString(p, "")
	p = escape.ReplaceAllStringFunc(p, func(e string) string {
		const hex = "0123456789abcdef"
		e = strings.ToLower(e)
		return string([]byte{byte(strings.IndexByte(hex, e[1])<<4 | strings.IndexByte(hex, e[2]))})
	})
	p = afterNUL.ReplaceAllString(p, "")
	return dumbUnderFront(resolve(p))
}

func resolve(p string) string {
	var segments []string
	for _, s := range strings.Split(p, "/") {
		switch s {
		case "", ".":
		case "..":
			segments = segments[:max(0, len(segments)-1)]
		default:
			segments = append(segments, s)
		}
	}
	return "/" + strings.Join(segments, "/")
}

func dumbUnderFront(p string) string {
	if !strings.HasPrefix(p, "/index.php") {
		return p
	}
	return "/" + strings.TrimPrefix(p[len("/index.php"):], "/")
}

// laravelPath is what Laravel 8 compares with a route's path, for a target that
// nginx let through to /index.php (Symfony's Request::getPathInfo, and
// Illuminate's UriValidator).
func laravelPath(target string) string {
	p := afterPath.ReplaceAllString(target, "")
	prefix := regexp.MustCompile(`(?s)^(%[0-9a-fA-F]{2}|.){10}`).FindString(p)
	if strings.HasPrefix(unescapeOnce(p), "/index.php") {
		p = p[len(prefix):]
	}
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return unescapeOnce(strings.TrimRight(p, "/"))
}

func FuzzPathForms(f *testing.F) {
	for _, s := range []string{"/stripe/webhook", "/x/%2e%2e//stripe/webhook/", "/index.php%2fstripe/webhook", "http://h/stripe/webhook#x", "/%69ndex.phpstripe/webhook", "/stripe/webhook%00x", "a/b:c//d", "%", "/..", "/%252e"} {
		f.Add(s)
	}
	const hook = "/stripe/webhook"
	f.Fuzz(func(t *testing.T, target string) {
		got := canonicalPath(target)
		if want := dumbPath(target); got != want {
			t.Fatalf("%q: got %q, the second implementation says %q", target, got, want)
		}
		if !strings.HasPrefix(got, "/") || slices.Contains(strings.Split(got, "/"), "..") && !strings.Contains(target, "index.php") {
			t.Fatalf("%q: got %q", target, got)
		}
		if strings.HasPrefix(target, "/") && laravelPath(target) == hook && got != hook {
			t.Fatalf("%q reaches Laravel's handler and is no route: %q", target, got)
		}
	})
}
