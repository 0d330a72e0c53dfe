package proxy

import (
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
		k, body, err := readKept(kept)
		if err != nil {
			return nil // ours can always be read
		}
		for _, names := range [][]string{credentials, r.Redact} {
			for _, name := range names {
				delete(k.Header, http.CanonicalHeaderKey(name))
			}
		}
		if k.Partial = !whole; k.Partial {
			body = nil
		}
		return k.write(body)
	}
}
