package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"oncegate/internal/config"
)

// files looks at who can read and change what oncegate reads, and at where it
// keeps what must outlive a deploy.
func (r *Report) files(o Options) {
	for _, name := range o.Config.Files() {
		r.file(name)
	}
	r.stateDir(o)
}

// file judges one file of the configuration. Each may hold a secret, or say
// where one is.
func (r *Report) file(name string) {
	info, err := os.Stat(name)
	if err != nil {
		r.add("files", name, Fault, "can't be looked at: "+reason(err), "run doctor as the user that serves, or as root")
		return
	}
	mode := info.Mode().Perm()
	switch {
	case mode&0o022 != 0:
		r.add("files", name, Fault, fmt.Sprintf("others can change it (mode %04o)", mode), "chmod go-w "+name)
	case mode&0o004 != 0 && !isYAML(name):
		r.add("files", name, Warning, fmt.Sprintf("every user of this machine can read the secrets in it (mode %04o)", mode), "chmod o-r "+name)
	default:
		r.add("files", name, OK, fmt.Sprintf("mode %04o", mode), "")
	}
}

// isYAML tells the configuration file, in which no secret need stand.
func isYAML(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

func (r *Report) stateDir(o Options) {
	c, dir := o.Config, o.Config.StateDir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if inRelease(dir, c) {
		r.add("state_dir", c.StateDir, Fault, "lies in a folder that a deploy replaces: all claims would be gone with it", "move it out, to /var/lib/oncegate say")
		return
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := o.writable(existing(dir)); err != nil {
			r.add("state_dir", c.StateDir, Fault, "is not there, and can't be made: "+existing(dir)+": "+reason(err), "make it, as root, for the user that serves: install -d -m 700 -o USER "+dir)
			return
		}
		r.add("state_dir", c.StateDir, OK, "is not there yet; serve makes it", "")
	case err != nil:
		r.add("state_dir", c.StateDir, Fault, "can't be looked at: "+reason(err), "run doctor as the user that serves, or as root")
	case !info.IsDir():
		r.add("state_dir", c.StateDir, Fault, "is no folder", "name another, or move that file away")
	case info.Mode().Perm()&0o022 != 0:
		r.add("state_dir", c.StateDir, Fault, fmt.Sprintf("others can change claims (mode %04o)", info.Mode().Perm()), "chmod 700 "+dir)
	case info.Mode().Perm()&0o055 != 0:
		r.add("state_dir", c.StateDir, Warning, fmt.Sprintf("others can read stored answers (mode %04o)", info.Mode().Perm()), "chmod 700 "+dir)
	case o.writable(dir) != nil:
		r.add("state_dir", c.StateDir, Fault, "can't be written to by this user: "+reason(o.writable(dir)), "run doctor as the user that serves; if that is this one, give it the folder: chown -R USER "+dir)
	default:
		r.add("state_dir", c.StateDir, OK, fmt.Sprintf("mode %04o, and no deploy replaces it", info.Mode().Perm()), "")
	}
}

// existing is the part of a path that is there.
func existing(path string) string {
	for path != "/" && path != "." {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

// inRelease reports whether dir goes with a release: it has a part "releases", as
// the folders of zero-downtime deploys do, or lies within an app's own folder.
func inRelease(dir string, c *config.Config) bool {
	parts := strings.Split(dir, "/")
	for _, part := range parts[:len(parts)-1] {
		if part == "releases" {
			return true
		}
	}
	roots := []string{c.Upstream.Root}
	for _, route := range c.Routes {
		roots = append(roots, route.Upstream.Root)
	}
	for _, root := range roots {
		if root == "" {
			continue
		}
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real
		}
		// The app's folder is the one that holds the document root.
		if app := filepath.Dir(root); app != "/" && (dir == app || strings.HasPrefix(dir, app+"/")) {
			return true
		}
	}
	return false
}

// reason is what the system said of a file, without its name.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
