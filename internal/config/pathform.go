package config

import (
	"net/url"
	"path"
	"strings"
)

// PathForm returns the form in which paths are compared: percent-decoded once,
// slashes merged, dots resolved, trailing slashes and one leading /index.php
// dropped. Two raw paths of one form reach one handler in Laravel. It reports
// false where raw is no path that could reach any: one without a leading slash,
// with a broken escape or with a NUL byte.
func PathForm(raw string) (form string, ok bool) {
	if raw == "" || raw[0] != '/' {
		return "", false
	}
	decoded, err := url.PathUnescape(raw)
	if err != nil || strings.ContainsRune(decoded, 0) {
		return "", false
	}
	form = path.Clean(decoded)
	if rest, ok := strings.CutPrefix(form, "/index.php"); ok && (rest == "" || rest[0] == '/') {
		form = "/" + strings.TrimPrefix(rest, "/")
	}
	return form, true
}
