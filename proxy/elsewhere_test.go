package proxy_test

import "testing"

func TestNoWayRoundByHeadOrHeader(t *testing.T) {
	t.Run("B48 HEAD where GET carries events", func(t *testing.T) {
		r := newRig(t, newApp(t), newMem(), acmeRoute("key: {query: id}\nmethods: [GET]"))
		req := r.post("/hooks/acme?id=1", "")
		req.Method = "HEAD"
		if s := r.expect(req, 405, "malformed"); s.header.Get("Allow") != "GET" {
			t.Errorf("allowed is %q", s.header["Allow"])
		}
		r.hits(0)
	})
	t.Run("B48 a header in the place of the target", func(t *testing.T) {
		const off = "  off: {path: /hooks/off, verify: none, mode: off}\n"
		r := newRig(t, newApp(t), newMem(), acmeRoute("key: {header: X-Id}")+off)
		for _, line := range []string{
			"X-Original-URL: /hooks/acme", "X-Rewrite-URL: /index.php//hooks/acme/?x=y", "x_original_url: http://h/hooks/acme",
			"X-Original-URL: /\r\nX-Original-URL: /hooks/acme",
		} {
			if s := r.raw("{}", "POST /other HTTP/1.1", "Host: h", "X-Id: 1", line); s.status != 401 || s.result != "unverified" {
				t.Errorf("%s: got %d %q %v", line, s.status, s.result, s.err)
			}
		}
		for target, elsewhere := range map[string]string{"/hooks/off": "/hooks/acme", "/hooks/acme": "/hooks/off"} {
			if s := r.raw("{}", "POST "+target+" HTTP/1.1", "Host: h", "X-Original-URL: "+elsewhere); s.status != 400 {
				t.Errorf("%s, and %s in a header: got %d %q %v", target, elsewhere, s.status, s.result, s.err)
			}
		}
		r.hits(0)
		for _, line := range []string{"X-Original-URL: /hooks/other", "X-Original-URL: /other", "X-Original-URI: /hooks/acme"} {
			if s := r.raw("{}", "POST /other HTTP/1.1", "Host: h", line); s.status != 200 || s.result != "" {
				t.Errorf("%s: got %d %q %v", line, s.status, s.result, s.err)
			}
		}
		r.hits(3)
	})
}
