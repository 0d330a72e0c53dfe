package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"

	"oncegate/internal/config"
)

// credentials are header lines that no request keeps when its claim is done.
var credentials = []string{"Authorization", "Proxy-Authorization", "Cookie"}

// keepDone returns what a route keeps of a request when its claim is done; nil
// for nothing. Until then a request that is kept at all is whole, or it could not
// be sent.
func keepDone(r *config.Route) func([]byte) []byte {
	var whole bool
	switch r.Record {
	case "full":
		whole = true
	case "headers":
	default:
		return nil
	}
	return func(kept []byte) []byte {
		head, body, ok := bytes.Cut(kept, []byte("\n"))
		var k keptRequest
		if !ok || json.Unmarshal(head, &k) != nil {
			return nil // ours can always be read
		}
		for _, names := range [][]string{credentials, r.Redact} {
			for _, name := range names {
				delete(k.Header, http.CanonicalHeaderKey(name))
			}
		}
		k.Partial = !whole
		head, _ = json.Marshal(k) // strings and lists of them always marshal
		if !whole {
			body = nil
		}
		return append(append(head, '\n'), body...)
	}
}
