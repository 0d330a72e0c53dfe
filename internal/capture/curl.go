package capture

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"oncegate/internal/delivery"
)

func isCurl(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("$ "))
	rest, ok := bytes.CutPrefix(text, []byte("curl"))
	return ok && len(rest) > 0 && strings.IndexByte(" \t\r\n\\", rest[0]) >= 0
}

// What curl's options mean for the request: those that take a word, those that
// stand alone, and nothing else. An unknown one could change the request.
const (
	ignoredWords = " -o --output -m --max-time --connect-timeout -w --write-out --resolve --cacert --cert --key -x --proxy --retry "
	ignoredAlone = " --compressed -k --insecure -s --silent -S --show-error -i --include -v --verbose -L --location -f --fail -g --globoff" +
		" -N --no-buffer -4 -6 --ipv4 --ipv6 -# --http1.0 --http1.1 --http2 --http2-prior-knowledge --http3 --path-as-is --fail-with-body "
)

// A curl is a command on its way to a request.
type curl struct {
	o      Options
	method string
	url    string
	header http.Header
	bodies [][]byte // joined by &
	json   bool
	doubts []string
}

func readCurl(text string, o Options) (Request, error) {
	words, err := shellWords(strings.TrimPrefix(text, "$ "))
	if err != nil {
		return Request{}, err
	}
	c := &curl{o: o, header: http.Header{}}
	for words = words[1:]; len(words) > 0; {
		used, err := c.take(words)
		if err != nil {
			return Request{}, err
		}
		words = words[used:]
	}
	return c.request()
}

// take takes the next word, and the one after it where it needs that.
func (c *curl) take(words []string) (used int, err error) {
	name, value, joined := words[0], "", false
	if !strings.HasPrefix(name, "-") || name == "-" {
		if c.url != "" {
			return 0, wrong("the curl command has two URLs; take the one that was called")
		}
		c.url = name
		return 1, nil
	}
	alone := func(name string) bool { return strings.Contains(ignoredAlone, " "+name+" ") }
	switch {
	case strings.HasPrefix(name, "--"):
		name, value, joined = strings.Cut(name, "=")
	case alone(name):
		return 1, nil
	case len(name) > 2 && alone(name[:2]): // -sS
		words[0] = "-" + name[2:]
		return 0, nil
	case len(name) > 2: // -XPOST
		name, value, joined = name[:2], name[2:], true
	}
	if alone(name) {
		return 1, nil
	}
	used = 1
	if !joined {
		if len(words) < 2 {
			return 0, wrong("the curl command ends after %s", name)
		}
		value, used = words[1], 2
	}
	return used, c.option(name, value)
}

func (c *curl) option(name, value string) error {
	switch name {
	case "-X", "--request":
		c.method = value
	case "--url":
		c.url = value
	case "-H", "--header":
		return c.headerLine(value)
	case "-A", "--user-agent":
		c.header.Set("User-Agent", value)
	case "-e", "--referer":
		c.header.Set("Referer", value)
	case "-b", "--cookie":
		c.header.Set("Cookie", value)
	case "-u", "--user":
		c.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(value)))
	case "-d", "--data", "--data-ascii":
		return c.data(value, true)
	case "--data-binary":
		return c.data(value, false)
	case "--data-raw":
		c.bodies = append(c.bodies, []byte(value))
	case "--json":
		c.json = true
		return c.data(value, false)
	default:
		if !strings.Contains(ignoredWords, " "+name+" ") {
			return wrong("curl's option %s is not one that can be read here; take a raw request instead", name)
		}
	}
	return nil
}

func (c *curl) headerLine(line string) error {
	name, value, ok := strings.Cut(line, ":")
	if strings.HasPrefix(line, "@") || !ok {
		return wrong("a header line of the curl command is no `Name: value`")
	}
	c.header.Add(strings.TrimSpace(name), strings.Trim(value, " \t"))
	return nil
}

// data adds to the body. Of a file that -d names, curl drops the line ends.
func (c *curl) data(value string, text bool) error {
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		c.bodies = append(c.bodies, []byte(value))
		return nil
	}
	if c.o.ReadFile == nil || name == "-" {
		return wrong("the curl command takes its body from elsewhere; write it into the command")
	}
	body, err := c.o.ReadFile(name)
	if err != nil {
		return err
	}
	if text {
		body = []byte(strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(string(body)))
		c.doubts = append(c.doubts, "curl's -d drops the line ends of a file; --data-binary keeps them")
	}
	c.bodies = append(c.bodies, body)
	return nil
}

func (c *curl) request() (Request, error) {
	if !strings.Contains(c.url, "://") {
		c.url = "http://" + c.url // as curl does
	}
	u, err := url.Parse(c.url)
	if err != nil || u.Host == "" {
		return Request{}, wrong("the curl command has no URL")
	}
	separator := "&"
	if c.json {
		separator = ""
	}
	d := &delivery.Delivery{Method: c.method, Target: targetOf(c.url), Host: u.Host, Header: c.header, Body: bytes.Join(c.bodies, []byte(separator))}
	if d.Method == "" {
		d.Method = http.MethodGet
		if c.bodies != nil {
			d.Method = http.MethodPost
		}
	}
	if host := d.Header.Get("Host"); host != "" {
		d.Host = host
		d.Header.Del("Host")
	}
	if c.bodies != nil && len(d.Header["Content-Type"]) == 0 {
		kind := "application/x-www-form-urlencoded"
		if c.json {
			kind = "application/json"
		}
		d.Header.Set("Content-Type", kind)
	}
	return Request{Delivery: d, Doubts: c.doubts}, nil
}
