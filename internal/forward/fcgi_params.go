package forward

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const frontController = "/index.php"

var errParam = errors.New("a header is too large for FastCGI")

// params collects FCGI_PARAMS records. PHP-FPM reads each record by itself, so a
// pair is never split between two.
type params struct {
	b     []byte
	start int // of the record being filled
	err   error
}

func (p *params) add(name, value string) {
	size := pairSize(name) + pairSize(value)
	if size > maxRecord {
		p.err = errParam
		return
	}
	if len(p.b)-p.start-recordHead+size > maxRecord {
		p.close()
		p.open()
	}
	p.b = appendSize(p.b, len(name))
	p.b = appendSize(p.b, len(value))
	p.b = append(p.b, name...)
	p.b = append(p.b, value...)
}

func (p *params) open() {
	p.start = len(p.b)
	p.b = appendRecordHead(p.b, typeParams, 0)
}

func (p *params) close() {
	binary.BigEndian.PutUint16(p.b[p.start+4:], uint16(len(p.b)-p.start-recordHead))
}

func pairSize(s string) int {
	if len(s) < 128 {
		return 1 + len(s)
	}
	return 4 + len(s)
}

func appendSize(b []byte, n int) []byte {
	if n < 128 {
		return append(b, byte(n))
	}
	return binary.BigEndian.AppendUint32(b, uint32(n)|1<<31)
}

// appendParams appends what nginx's fastcgi_params would say, with the front
// controller as the script of every request. REQUEST_SCHEME is http, SERVER_PORT
// is Host's or 80, and SERVER_ADDR is the loopback's: who stands before oncegate
// says what the sender saw in X-Forwarded-*, which pass unchanged.
func (f *fastCGI) appendParams(b []byte, o *outgoing) ([]byte, error) {
	if !httpguts.ValidHeaderFieldName(o.method) {
		return b, errMethod
	}
	if o.target == "" || !visible(o.target) {
		return b, errTarget
	}
	if !visible(o.host) {
		return b, errHost
	}
	root := f.root
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real // a release switched by symlink must not run the old one's code
	}
	p := &params{b: b}
	p.open()
	uri := requestURI(o.target)
	p.add("QUERY_STRING", queryOf(uri))
	p.add("REQUEST_METHOD", o.method)
	p.add("CONTENT_TYPE", o.header.Get("Content-Type"))
	p.add("CONTENT_LENGTH", o.lengthText())
	p.add("SCRIPT_FILENAME", root+frontController)
	p.add("SCRIPT_NAME", frontController)
	p.add("REQUEST_URI", uri)
	p.add("DOCUMENT_URI", frontController)
	p.add("DOCUMENT_ROOT", root)
	p.add("SERVER_PROTOCOL", "HTTP/1.1")
	p.add("REQUEST_SCHEME", "http")
	p.add("GATEWAY_INTERFACE", "CGI/1.1")
	p.add("SERVER_SOFTWARE", "oncegate")
	p.add("REDIRECT_STATUS", "200")
	name, port := splitPort(o.host, "80")
	p.add("SERVER_NAME", name)
	p.add("SERVER_PORT", port)
	p.add("SERVER_ADDR", "127.0.0.1")
	addr, port := splitPort(o.remote, "0")
	if addr == "" {
		addr = "127.0.0.1"
	}
	p.add("REMOTE_ADDR", addr)
	p.add("REMOTE_PORT", port)
	p.add("HTTP_HOST", o.host)
	if err := p.addHeader(o); err != nil {
		return b, err
	}
	p.close()
	if p.err != nil {
		return b, p.err
	}
	return appendRecordHead(p.b, typeParams, 0), nil
}

// addHeader adds the header lines as HTTP_*. Names with anything but letters,
// digits and hyphens are left out, as nginx does by default: '_' and '-' become
// the same. So is Proxy, which would become HTTP_PROXY, a setting of many HTTP
// clients (httpoxy, CVE-2016-5385).
func (p *params) addHeader(o *outgoing) error {
	for name, values := range o.header {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if canonical == "Proxy" || !plainName(name) || isHop(canonical) || len(values) == 0 {
			continue
		}
		switch canonical {
		case "Host", "Expect":
			continue
		case "Content-Length":
			values = []string{o.lengthText()}
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("the value of header %q holds control characters", name)
			}
		}
		separator := ", "
		if canonical == "Cookie" {
			separator = "; "
		}
		p.add(cgiName(name), strings.Join(values, separator))
	}
	return nil
}

func plainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return false
		}
	}
	return name != ""
}

func cgiName(name string) string {
	return "HTTP_" + strings.ReplaceAll(strings.ToUpper(name), "-", "_")
}

// lengthText is the body's length as CGI says it: nothing where there is no body
// and nobody said so.
func (o *outgoing) lengthText() string {
	if o.length == 0 && !o.saysEmpty() {
		return ""
	}
	return strconv.FormatInt(o.length, 10)
}

// requestURI is the target without the scheme and host of an absolute one, as
// nginx passes it; every other byte stays.
func requestURI(target string) string {
	if strings.HasPrefix(target, "/") {
		return target
	}
	_, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		return rest[i:]
	}
	return "/"
}

func queryOf(uri string) string {
	uri, _, _ = strings.Cut(uri, "#")
	_, query, _ := strings.Cut(uri, "?")
	return query
}

// splitPort splits host:port; a host without a port gets the given one.
func splitPort(hostport, port string) (string, string) {
	if host, p, err := net.SplitHostPort(hostport); err == nil {
		return host, p
	}
	return strings.Trim(hostport, "[]"), port
}
