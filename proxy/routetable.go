package proxy

import "strings"

// A routeTable finds the route of a request: by its canonical path, case and all.
// The paths it holds are canonical themselves; config sees to that.
type routeTable[R any] map[string]R

// match returns the route that a raw target belongs to.
func (t routeTable[R]) match(target string) (R, bool) {
	plain := plainPath(target)
	p := underFront(plain)
	if r, ok := t[p]; ok {
		return r, true
	}
	if script, _, ok := strings.Cut(p, ".php/"); ok {
		// /hook.php/anything runs /hook.php.
		if r, ok := t[script+".php"]; ok {
			return r, true
		}
	}
	if strings.Contains(plain, frontController[1:]) {
		return t.behind(plain)
	}
	// Where the project's folder is served and not its public one, the app's
	// paths are the same with /public and without.
	p, _ = strings.CutPrefix(p, publicFolder)
	r, ok := t[p]
	return r, ok
}

const publicFolder = "/public"

// behind finds the route of a path with a front controller within. In an app that
// has a folder /shop/index.php/hook is /shop/hook. And where a server leads every
// path to a controller in a folder, Symfony cuts as many bytes off as the
// controller's own path has, whatever they are: /other/index.php/hook is /hook.
func (t routeTable[R]) behind(p string) (found R, ok bool) {
	at := strings.LastIndex(p, frontController[1:])
	folder, rest := strings.TrimSuffix(p[:at], "/"), p[at+len(frontController)-1:]
	rest = strings.TrimSuffix("/"+strings.TrimPrefix(rest, "/"), "/")
	best := ""
	for is, r := range t {
		fits := strings.HasSuffix(is, rest) && strings.HasSuffix(folder+rest, is) || is != "/" && strings.HasSuffix(p, is[1:])
		if fits && len(is) > len(best) {
			found, ok, best = r, true, is
		}
	}
	return found, ok
}
