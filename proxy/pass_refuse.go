package proxy

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// refusePass answers what can't be passed on with a problem document (RFC 9457).
func refusePass(w http.ResponseWriter, status int, result, detail string) {
	// Strings and a number always marshal.
	body, _ := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Result string `json:"result"`
	}{"about:blank", http.StatusText(status), status, detail, result})
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The client may be gone; there is nobody else to tell.
	_, _ = w.Write(body)
}
