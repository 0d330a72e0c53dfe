package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"oncegate/internal/config"
)

// Errors of ParsePublic.
var errPublic = errors.New("must be http:// or https:// and a host, and nothing after it: https://shop.example")

// ParsePublic checks the address for Options.Public.
func ParsePublic(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return errPublic
	}
	return nil
}

// public sends an unsigned delivery to every enforced route that verifies, in
// every form of its path, by the way that senders take. oncegate must refuse it:
// what does not come back as `unverified` has gone past oncegate, or never came
// to it.
func (r *Report) public(ctx context.Context, o Options) {
	if o.Public == "" {
		r.add("public", "-", Skipped, "whether senders reach oncegate was not tried", "--public https://shop.example tries it")
		return
	}
	client := newClient(2 * o.Timeout)
	for _, route := range o.Config.Routes {
		switch {
		case route.Mode != config.ModeEnforce:
			r.add("public", route.Name, Skipped, "not probed: the route is not enforced, and the probe would reach the app", "")
		case route.Verifier == nil:
			r.add("public", route.Name, Skipped, "not probed: the route verifies nothing, and the probe would reach the app", "")
		default:
			r.probe(ctx, client, o.Public, route)
		}
	}
}

func (r *Report) probe(ctx context.Context, client *http.Client, public string, route *config.Route) {
	forms := pathForms(route.Path)
	method := http.MethodPost
	if !slices.Contains(route.Methods, method) {
		method = route.Methods[0]
	}
	past := 0
	for _, form := range forms {
		found := sendProbe(ctx, client, method, strings.TrimSuffix(public, "/"), form)
		if found == "" {
			continue
		}
		past++
		r.add("public", form, Fault, found, "send every form of the path to oncegate; docs/laravel-vps.md has nginx's lines for it")
	}
	if past == 0 {
		r.add("public", route.Name, OK, fmt.Sprintf("%d forms of %s come to oncegate, and are refused unsigned", len(forms), route.Path), "")
	}
}

// pathForms are ways to write a path that a web server and a PHP framework take
// for the same.
func pathForms(path string) []string {
	first := fmt.Sprintf("/%%%02X", path[1]) + path[2:]
	last := path[:len(path)-1] + fmt.Sprintf("%%%02x", path[len(path)-1])
	forms := []string{
		path, path + "/", path + "//", path + "?probe", "/" + path, "/." + path, "/x/.." + path, path + "/.",
		"/index.php" + path, "/index.php" + path + "/", "//index.php/" + path, "/index.php" + first, first, last, path + "%2F",
	}
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		forms = append(forms, path[:i]+"%2F"+path[i+1:], path[:i]+"%2f"+path[i+1:], path[:i]+"/"+path[i:])
	}
	return forms
}

// sendProbe sends one unsigned delivery, and says what is wrong with its answer;
// nothing where it was refused as it must be.
func sendProbe(ctx context.Context, client *http.Client, method, public, form string) string {
	target, err := url.Parse(public)
	if err != nil {
		return errPublic.Error()
	}
	raw, query, _ := strings.Cut(form, "?")
	target.RawPath, target.RawQuery = raw, query
	if target.Path, err = url.PathUnescape(raw); err != nil {
		return "is no path"
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), strings.NewReader("{}"))
	if err != nil {
		return "can't be sent"
	}
	request.URL = target // as it is, with nothing cleaned up
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "oncegate-doctor")
	answer, err := client.Do(request)
	if err != nil {
		return "no answer: " + urlReason(err)
	}
	defer answer.Body.Close()
	// Read a little, so that a server is not cut off in the middle of a page.
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)); err != nil {
		return "the answer broke off"
	}
	switch word := answer.Header.Get(resultHeader); word {
	case "unverified":
		return ""
	case "":
		return fmt.Sprintf("answered %d, and not by oncegate: this form of the path goes past it", answer.StatusCode)
	default:
		return fmt.Sprintf("answered %d %.20q; an unsigned delivery must be `unverified`", answer.StatusCode, word)
	}
}

// newClient returns a client that sends each request once and follows no
// redirect.
func newClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// urlReason is what went wrong, without the URL.
func urlReason(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return dialReason(err)
}
