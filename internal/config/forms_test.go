package config

import (
	"testing"
	"time"
)

func TestUpstream(t *testing.T) {
	for text, want := range map[string]Upstream{
		"http://127.0.0.1:8000":                       {Scheme: "http", Address: "127.0.0.1:8000", Host: "127.0.0.1"},
		"http://app/":                                 {Scheme: "http", Address: "app:80", Host: "app"},
		"https://app.example":                         {Scheme: "https", Address: "app.example:443", Host: "app.example"},
		"https://[::1]:8443":                          {Scheme: "https", Address: "[::1]:8443", Host: "::1"},
		"http+unix:/run/app.sock":                     {Scheme: "unix", Address: "/run/app.sock"},
		"http+unix:///run/a%20b.sock":                 {Scheme: "unix", Address: "/run/a b.sock"},
		"fcgi://127.0.0.1:9001?root=/srv/app/public/": {Scheme: "fcgi", Address: "127.0.0.1:9001", Host: "127.0.0.1", Root: "/srv/app/public"},
		"fcgi://php?root=/srv":                        {Scheme: "fcgi", Address: "php:9000", Host: "php", Root: "/srv"},
		"fcgi+unix:/run/fpm.sock?root=%2Fsrv%2Fa%20b": {Scheme: "fcgi", Address: "/run/fpm.sock", Root: "/srv/a b"},
		"":                                      {},
		"127.0.0.1:8000":                        {},
		"ftp://app":                             {},
		"http://":                               {},
		"http://app:0":                          {},
		"http://app:99999":                      {},
		"http://app/path":                       {},
		"http://app?root=/x":                    {},
		"http://user:pass@app":                  {},
		"http+unix:run/app.sock":                {},
		"http+unix:/run/app.sock?root=/x":       {},
		"fcgi://127.0.0.1:9000":                 {},
		"fcgi://127.0.0.1:9000?root=relative":   {},
		"fcgi://127.0.0.1:9000?root=/a&root=/b": {},
		"fcgi://127.0.0.1:9000?root=/a&script=/etc/x.php": {},
		"fcgi+unix:/run/fpm.sock":                         {},
	} {
		idle := 4 * time.Second
		l := &loader{top: topLevel{UpstreamIdleTimeout: &idle}}
		got := l.upstream("upstream", text)
		if want.Scheme == "" {
			if len(l.faults) != 1 {
				t.Errorf("%q is taken for %+v", text, got)
			}
			continue
		}
		want.IdleTimeout = idle
		if len(l.faults) > 0 || got != want {
			t.Errorf("%q: got %+v (%v), want %+v", text, got, l.faults, want)
		}
	}
}

func TestStore(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name string
		spec storeSpec
		want Store
		url  string
	}{
		{"sqlite", storeSpec{URL: text("sqlite")}, Store{Kind: "sqlite", Path: "/state/oncegate.db"}, "sqlite:/state/oncegate.db"},
		{"sqlite, a file", storeSpec{URL: text("sqlite:///srv/a%20b.db")}, Store{Kind: "sqlite", Path: "/srv/a b.db"}, "sqlite:/srv/a b.db"},
		{"postgres", storeSpec{URL: text("postgresql://u:p@h:5432/d?sslmode=require"), Schema: text("once")}, Store{Kind: "postgres", URL: "postgres://u:p@h:5432/d?sslmode=require", Schema: "once"}, "postgres://h:5432/d"},
		{"mariadb", storeSpec{URL: text("mariadb://h/d"), User: text("a:b"), Password: text("p@ss/w#rd")}, Store{Kind: "mysql", URL: "mysql://a%3Ab:p%40ss%2Fw%23rd@h/d"}, "mysql://h/d"},
		{"redis, a password only", storeSpec{URL: text("rediss+cluster://h:6379"), Password: text("s3cret")}, Store{Kind: "redis", URL: "rediss+cluster://:s3cret@h:6379"}, "rediss+cluster://h:6379"},
		{"a user only", storeSpec{URL: text("postgres://h/d"), User: text("peer")}, Store{Kind: "postgres", URL: "postgres://peer@h/d"}, "postgres://h/d"},
		{name: "no URL", spec: storeSpec{}},
		{name: "another scheme", spec: storeSpec{URL: text("mongodb://h/d")}},
		{name: "no host", spec: storeSpec{URL: text("postgres:///d")}},
		{name: "unescaped password", spec: storeSpec{URL: text("postgres://u:s3c#ret@h/d")}},
		{name: "unescaped slash", spec: storeSpec{URL: text("postgres://u:s3c/ret@h/d")}},
		{name: "two users", spec: storeSpec{URL: text("postgres://u@h/d"), User: text("v")}},
		{name: "password without user", spec: storeSpec{URL: text("mysql://h/d"), Password: text("s3cret")}},
		{name: "empty password", spec: storeSpec{URL: text("mysql://h/d"), User: text("u"), Password: text(" ")}},
		{name: "sqlite with a password", spec: storeSpec{URL: text("sqlite"), Password: text("s3cret")}},
		{name: "sqlite, relative", spec: storeSpec{URL: text("sqlite:claims.db")}},
		{name: "a schema of redis", spec: storeSpec{URL: text("redis://h"), Schema: text("once")}},
		{name: "a schema to inject", spec: storeSpec{URL: text("postgres://h/d"), Schema: text("a; drop")}},
		{name: "an exec mode that is none", spec: storeSpec{URL: text("postgres://h/d"), ExecMode: text("fast")}},
		{name: "replicas of postgres", spec: storeSpec{URL: text("postgres://h/d"), Replicas: new(int)}},
		{name: "a weakness that is no name", spec: storeSpec{URL: text("sqlite"), AcceptWeak: []string{"every thing"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &loader{store: c.spec, vars: &variables{}}
			got := l.compileStore("/state")
			if c.want.Kind == "" {
				if len(l.faults) != 1 {
					t.Errorf("got %+v, %v; want one fault", got.String(), l.faults)
				}
				return
			}
			if len(l.faults) > 0 {
				t.Fatal(l.faults)
			}
			if got.Kind != c.want.Kind || got.URL != c.want.URL || got.Path != c.want.Path || got.Schema != c.want.Schema || got.Migrate != "auto" {
				t.Errorf("got %s %s %s %s", got.Kind, got.URL, got.Path, got.Schema)
			}
			if got.String() != c.url {
				t.Errorf("prints as %s, want %s", got, c.url)
			}
		})
	}
}

func TestPlainPath(t *testing.T) {
	for path, want := range map[string]bool{
		"/stripe/webhook": true, "/": true, "/a;b=c": true, "/caf\u00e9": true, "/a b": true, "/.well-known/hook": true,
		"": false, "stripe": false, "/stripe/": false, "/stripe//webhook": false, "/a/../b": false, "/a/.": false, "/stripe%2Fwebhook": false,
		"/a?b": false, "/a#b": false, "/a\x00": false, "/a\nb": false, "/index.php": false, "/index.php/a": false, "/index.phpa": false, "http://h/a": false,
	} {
		if got := plainPath(path); got != want {
			t.Errorf("plainPath(%q) = %v", path, got)
		}
	}
}

func TestReadable(t *testing.T) {
	for want, value := range map[string]any{"35d": 35 * day, "1h30m": 90 * time.Minute, "2h": 2 * time.Hour, "2m": 2 * time.Minute, "1m30s": 90 * time.Second, "250ms": 250 * time.Millisecond, "0s": time.Duration(0), "7": 7} {
		if got := readable(value); got != want {
			t.Errorf("readable(%v) = %s, want %s", value, got, want)
		}
	}
}
