package k8s

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// epoch is the time that every file in the images has.
const epoch = "1700000000"

// A workshop is a place where images are made.
type workshop struct {
	dir string // of images, and of what is pushed out of them
}

// newWorkshop makes one that holds the base image: the two programs that the
// build runs, with their libraries, and the roots of trust. The Go installation
// itself is mounted, since copies of it would fill the disk.
func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Fatal("buildah is not installed: apt-get install buildah")
	}
	if os.Geteuid() != 0 {
		t.Fatal("building an image and running it takes root")
	}
	w := &workshop{dir: t.TempDir()}
	base := filepath.Join(w.dir, "base")
	for _, file := range append(programFiles(t, "sh", "mkdir"), "/etc/ssl/certs/ca-certificates.crt") {
		copyFile(t, file, filepath.Join(base, file))
	}
	for _, dir := range []string{"tmp", "usr/local/go"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.buildah(t, base, "build", "--isolation", "chroot", "-t", "base", "-f", "-", ".")
	return w
}

const baseImage = `
FROM scratch
COPY . /
ENV PATH=/usr/local/go/bin:/bin HOME=/tmp GOTOOLCHAIN=local GOMODCACHE=/go/pkg/mod GOCACHE=/go/cache
`

// programFiles returns the programs' paths and those of the libraries that they
// load.
func programFiles(t *testing.T, names ...string) (files []string) {
	t.Helper()
	for _, name := range names {
		path := "/bin/" + name
		libraries, err := exec.Command("ldd", path).Output()
		if err != nil {
			t.Fatalf("ldd %s: %v", path, err)
		}
		files = append(files, path)
		for _, word := range strings.Fields(string(libraries)) {
			if strings.HasPrefix(word, "/") {
				files = append(files, word)
			}
		}
	}
	return files
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// buildah runs it in a folder, with storage of the workshop's own, and returns
// what it prints. A file "-" is the base image's.
func (w *workshop) buildah(t *testing.T, dir string, args ...string) string {
	t.Helper()
	storage := []string{"--storage-driver", "vfs", "--root", filepath.Join(w.dir, "storage"), "--runroot", filepath.Join(w.dir, "run")}
	cmd := exec.Command("buildah", append(storage, args...)...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(baseImage)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("buildah %s: %v\n%s%s", args[0], err, out.Bytes(), errs.Bytes())
	}
	return strings.TrimSpace(out.String())
}

// source copies what the Dockerfile's build may see to a folder, so that it can lie
// elsewhere and does not change meanwhile.
func source(t *testing.T, to string) {
	t.Helper()
	text, err := os.ReadFile(root + "/.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines("!Dockerfile\n!.dockerignore\n" + string(text)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "!")
		info, err := os.Stat(filepath.Join(root, name))
		switch {
		case !ok || os.IsNotExist(err):
		case err != nil:
			t.Fatal(err)
		case info.IsDir():
			if err := os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(root, name))); err != nil {
				t.Fatal(err)
			}
		default:
			copyFile(t, filepath.Join(root, name), filepath.Join(to, name))
		}
	}
}

// build makes the product's image of what is in a folder. The machine's module cache stands in for the
// network, and its build cache saves compiling again what it has compiled with
// the same flags; linking and everything after are done each time.
func (w *workshop) build(t *testing.T, from, tag, arch string) {
	t.Helper()
	w.buildah(t, from, "build", "--isolation", "chroot", "--format", "docker", "--timestamp", epoch, "--platform", "linux/"+arch,
		// BuildKit sets this by itself.
		"--build-arg", "BUILDPLATFORM="+runtime.GOOS+"/"+runtime.GOARCH,
		"--build-arg", "GO_IMAGE=localhost/base", "--build-arg", "GOPROXY=off", "--build-arg", "VERSION=1.2.3", "--build-arg", "REVISION=abc",
		"--volume", goEnv(t, "GOROOT")+":/usr/local/go:ro",
		"--volume", goEnv(t, "GOMODCACHE")+":/go/pkg/mod", "--volume", goEnv(t, "GOCACHE")+":/go/cache",
		"-t", tag, ".")
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatalf("go env %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

// An image is what a registry would be given.
type image struct {
	Architecture string
	Config       struct {
		User                  string
		Env, Cmd, Entrypoint  []string
		ExposedPorts, Volumes map[string]struct{}
		Labels                map[string]string
		Healthcheck           struct{ Test []string }
	}
	// Layers are their digests, compressed is what they weigh.
	layers     []string
	compressed int64
}

// push writes an image out and reads what it consists of.
func (w *workshop) push(t *testing.T, tag string) (i image) {
	t.Helper()
	out := filepath.Join(w.dir, "out-"+tag)
	w.buildah(t, w.dir, "push", "--remove-signatures", tag, "dir:"+out)
	type blob struct {
		Digest string
		Size   int64
	}
	var manifest struct {
		Config blob
		Layers []blob
	}
	readJSON(t, filepath.Join(out, "manifest.json"), &manifest)
	readJSON(t, filepath.Join(out, strings.TrimPrefix(manifest.Config.Digest, "sha256:")), &i)
	for _, layer := range manifest.Layers {
		i.layers = append(i.layers, layer.Digest)
		i.compressed += layer.Size
	}
	return i
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
