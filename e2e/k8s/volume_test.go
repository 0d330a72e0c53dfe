package k8s

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"oncegate/internal/testenv"
)

// A volume is a ConfigMap or Secret as kubelet mounts it: files are links through
// ..data to a folder of their own, and a change swaps that one link.
type volume struct {
	dir     string
	version int
}

func newVolume(t *testing.T, files map[string]string) *volume {
	t.Helper()
	v := &volume{dir: testenv.Dir(t)}
	if err := os.Chmod(v.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	v.swap(t, files)
	for name := range files {
		if err := os.Symlink("..data/"+name, filepath.Join(v.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// swap puts all files in place of those that were there, at one moment.
func (v *volume) swap(t *testing.T, files map[string]string) {
	t.Helper()
	v.version++
	folder := fmt.Sprintf("..version_%d", v.version)
	if err := os.Mkdir(filepath.Join(v.dir, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(v.dir, folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(folder, filepath.Join(v.dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// makePlace makes what something can be mounted on: a file where the name is one
// that is always a file's, else a folder.
func makePlace(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if filepath.Base(path) == "hosts" {
		err = os.WriteFile(path, nil, 0o644)
	} else {
		err = os.MkdirAll(path, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}
