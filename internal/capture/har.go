package capture

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"oncegate/internal/delivery"
)

// A har is a HAR file (HTTP Archive 1.2), or one of its entries, or the request
// of one.
type har struct {
	Log *struct {
		Entries []harEntry `json:"entries"`
	} `json:"log"`
	Request *harRequest `json:"request"`
	harRequest
}

type harEntry struct {
	Request harRequest `json:"request"`
}

type harRequest struct {
	Method   string      `json:"method"`
	URL      string      `json:"url"`
	Headers  []harHeader `json:"headers"`
	BodySize int64       `json:"bodySize"`
	PostData *struct {
		Text     string            `json:"text"`
		Encoding string            `json:"encoding"` // base64, as some tools say it
		Params   []json.RawMessage `json:"params"`
	} `json:"postData"`
}

type harHeader struct{ Name, Value string }

// maxEntries bounds the entries of a HAR file that are looked at.
const maxEntries = 10_000

func readHAR(text []byte) ([]Request, error) {
	var h har
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, wrong("it begins like a HAR, and is no JSON: %v", err)
	}
	var found []harRequest
	switch {
	case h.Log != nil:
		if len(h.Log.Entries) > maxEntries {
			return nil, wrong("a HAR of more than %d entries", maxEntries)
		}
		for _, e := range h.Log.Entries {
			found = append(found, e.Request)
		}
	case h.Request != nil:
		found = []harRequest{*h.Request}
	case h.Method != "":
		found = []harRequest{h.harRequest}
	}
	if len(found) == 0 {
		return nil, wrong("a HAR has log.entries, and one of its entries a request; here is neither")
	}
	requests := make([]Request, 0, len(found))
	for i := range found {
		r, err := found[i].read()
		if err != nil {
			return nil, err
		}
		requests = append(requests, r)
	}
	return requests, nil
}

func (h *harRequest) read() (Request, error) {
	u, err := url.Parse(h.URL)
	if err != nil || u.Host == "" || h.Method == "" {
		return Request{}, wrong("an entry of the HAR has no method, or no whole URL")
	}
	r := Request{Delivery: &delivery.Delivery{Method: h.Method, Target: targetOf(h.URL), Host: u.Host, Header: http.Header{}}}
	for _, line := range h.Headers {
		if strings.HasPrefix(line.Name, ":") { // of HTTP/2
			continue
		}
		r.Delivery.Header.Add(line.Name, line.Value)
	}
	if host := r.Delivery.Header.Get("Host"); host != "" {
		r.Delivery.Host = host
		r.Delivery.Header.Del("Host")
	}
	if h.PostData == nil {
		return r, nil
	}
	r.Delivery.Body = []byte(h.PostData.Text)
	switch {
	case h.PostData.Encoding == "base64":
		if r.Delivery.Body, err = base64.StdEncoding.DecodeString(h.PostData.Text); err != nil {
			return Request{}, wrong("the body of an entry of the HAR is no base64, as it says")
		}
	case h.PostData.Text == "" && len(h.PostData.Params) > 0:
		return Request{}, wrong("the HAR holds a form's fields, and not the text of its body, which is what is signed")
	}
	if size := int64(len(r.Delivery.Body)); h.BodySize > 0 && h.BodySize != size {
		r.Doubts = append(r.Doubts, "the HAR says another size of the body than its text has")
	}
	return r, nil
}

// targetOf returns what stands behind the host of a whole URL, as written there:
// signatures over a URL mind every byte.
func targetOf(whole string) string {
	_, rest, _ := strings.Cut(whole, "://")
	i := strings.IndexAny(rest, "/?#")
	if i < 0 {
		return "/"
	}
	target, _, _ := strings.Cut(rest[i:], "#")
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	return target
}
