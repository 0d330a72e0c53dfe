package proxy

import (
	"net/http"
	"net/netip"
	"testing"
)

func TestRemote(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, tt := range []struct {
		peer  string
		lines []string
		want  string
	}{
		{"1.2.3.4:5", nil, "1.2.3.4"},
		{"1.2.3.4:5", []string{"9.9.9.9"}, "1.2.3.4"}, // not trusted, so not believed
		{"10.0.0.1:5", nil, "10.0.0.1"},
		{"10.0.0.1:5", []string{"9.9.9.9"}, "9.9.9.9"},
		{"[::ffff:10.0.0.1]:5", []string{"::ffff:9.9.9.9"}, "9.9.9.9"},
		{"10.0.0.1:5", []string{"8.8.8.8, 9.9.9.9"}, "9.9.9.9"},
		{"10.0.0.1:5", []string{"8.8.8.8, 9.9.9.9, 10.1.1.1"}, "9.9.9.9"},
		{"[::1]:5", []string{"8.8.8.8", "9.9.9.9 , 10.1.1.1"}, "9.9.9.9"},
		{"10.0.0.1:5", []string{"10.2.2.2, 10.1.1.1"}, "10.2.2.2"},
		{"10.0.0.1:5", []string{"9.9.9.9, unknown"}, "10.0.0.1"}, // what stands before it is hearsay
		{"10.0.0.1:5", []string{"9.9.9.9, , 10.1.1.1"}, "10.1.1.1"},
		{"@", []string{"9.9.9.9"}, "invalid IP"},
	} {
		req := &http.Request{RemoteAddr: tt.peer, Header: http.Header{"X-Forwarded-For": tt.lines}}
		if got := remote(trusted, req).String(); got != tt.want {
			t.Errorf("%s, %q: got %s, want %s", tt.peer, tt.lines, got, tt.want)
		}
	}
}
