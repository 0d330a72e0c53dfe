package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// askTimeout bounds one question to others: for a key, or whether a delivery is
// genuine.
const askTimeout = 5 * time.Second

// forward asks a verifier of the operator's own. It gets the delivery's header
// lines and body in a POST, with its method, target and host in
// Oncegate-Method, Oncegate-Target and Oncegate-Host. Any 2xx means genuine,
// any 4xx forged; whatever else comes, the delivery is refused for now.
type forward struct {
	url    string
	client *http.Client
}

func (c *compiler) forward(field string, s *Spec) scheme {
	u, err := url.Parse(s.HTTP)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		c.fault(field+".http", "has to be an http or https URL")
	}
	transport := c.o.Transport
	if transport == nil {
		// The verifier may stand on this machine: private addresses are fine.
		transport = http.DefaultTransport
	}
	return &forward{url: s.HTTP, client: noRedirects(transport)}
}

// noRedirects returns a client that treats a redirect as the answer it is.
func noRedirects(t http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (f *forward) verify(ctx context.Context, r *request) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, io.NopCloser(bytes.NewReader(r.Body)))
	if err != nil {
		return &Error{Kind: Unavailable, Place: "http", Detail: "no request can be made"}
	}
	req.ContentLength = int64(len(r.Body))
	if req.ContentLength == 0 {
		req.Body = http.NoBody
	}
	req.Header = r.Header.Clone()
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Content-Length"} {
		req.Header.Del(name)
	}
	req.Header.Set("Oncegate-Method", r.Method)
	req.Header.Set("Oncegate-Target", r.Target)
	req.Header.Set("Oncegate-Host", r.Host)
	resp, err := f.client.Do(req)
	if err != nil {
		// The URL, which may hold credentials, stays out of the error.
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return &Error{Kind: Unavailable, Place: "http", Detail: "the verifier was not reached", Err: err}
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)); err != nil {
		return &Error{Kind: Unavailable, Place: "http", Detail: "the verifier's answer broke off", Err: err}
	}
	switch resp.StatusCode / 100 {
	case 2:
		return nil
	case 4:
		return &Error{Kind: Mismatch, Place: "http", Detail: fmt.Sprintf("the verifier answered %d", resp.StatusCode)}
	}
	return &Error{Kind: Unavailable, Place: "http", Detail: fmt.Sprintf("the verifier answered %d", resp.StatusCode)}
}

func (f *forward) plausible(http.Header) error { return nil }
func (f *forward) sign(*signing) error         { return ErrCannotSign }
func (f *forward) judges() bool                { return false }
func (f *forward) accepts(string) error        { return nil }
