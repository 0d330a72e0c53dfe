package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"oncegate/internal/testenv"
)

// dist copies a tree to a place of its own, prepares it, runs `make dist` there,
// and returns the folder that holds what it built.
func dist(t *testing.T, from, version, arches string, prepare ...string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	tree := testenv.Dir(t)
	copyTree(t, from, tree)
	// What writes the SBOM is built once for all trees.
	run(t, exec.Command("make", "-C", root, "bin/tools/.sbom"))
	run(t, exec.Command("cp", "-r", root+"/bin", tree))
	run(t, exec.Command("touch", tree+"/bin/tools/.sbom"))
	for _, script := range prepare {
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = tree
		run(t, cmd)
	}
	cmd := exec.Command("make", "dist")
	cmd.Dir = tree
	// As Go does where nobody told it otherwise.
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=auto", "VERSION=v"+version, "ARCHES="+arches, "SOURCE_DATE_EPOCH=1700000000", "MAKEFLAGS=")
	run(t, cmd)
	return tree + "/dist"
}

func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// copyTree copies the sources, and neither history nor what was built.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case name == ".git" || name == "bin" || name == "dist":
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !e.Type().IsRegular():
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkDist looks at all that `make dist` has built, and builds it again in another
// place.
func checkDist(t *testing.T, dir string) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		t.Run("static binary for "+arch, func(t *testing.T) {
			f, err := elf.Open(dir + "/oncegate-linux-" + arch)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Machine != machine {
				t.Errorf("it is for %v", f.Machine)
			}
			for _, p := range f.Progs {
				if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
					t.Errorf("it is linked dynamically: %v", p.Type)
				}
			}
		})
		t.Run("SBOM for "+arch, func(t *testing.T) { checkSBOM(t, dir, arch) })
		t.Run("package for "+arch, func(t *testing.T) {
			out, err := exec.Command("dpkg-deb", "--field", dir+"/oncegate_1.0.0_"+arch+".deb", "Package", "Version", "Architecture").CombinedOutput()
			if want := "Package: oncegate\nVersion: 1.0.0\nArchitecture: " + arch + "\n"; err != nil || string(out) != want {
				t.Errorf("%v, %s", err, out)
			}
		})
	}
	t.Run("version", func(t *testing.T) {
		out, err := exec.Command(dir+"/oncegate-linux-"+runtime.GOARCH, "version").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "oncegate 1.0.0 ") {
			t.Errorf("%v, %s", err, out)
		}
	})
	t.Run("checksums of all", func(t *testing.T) { checkSums(t, dir) })
	t.Run("the same bytes in another place", func(t *testing.T) {
		// One that was cloned, not unpacked.
		const clone = "chown $(id -u) . && git init -q && git add -A && git -c user.name=x -c user.email=x@shop.example commit -q -m x"
		again, err := os.ReadFile(dist(t, filepath.Dir(dir), "1.0.0", "amd64 arm64", clone) + "/SHA256SUMS")
		if err != nil {
			t.Fatal(err)
		}
		first, err := os.ReadFile(dir + "/SHA256SUMS")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Errorf("first:\n%s\nthen:\n%s", first, again)
		}
	})
}

// checkSBOM holds the list of parts to what the toolchain wrote into the binary.
func checkSBOM(t *testing.T, dir, arch string) {
	name := dir + "/oncegate-linux-" + arch
	info, err := buildinfo.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name + ".cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	var sbom struct {
		BOMFormat  string
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(data, &sbom); err != nil {
		t.Fatal(err)
	}
	if sbom.BOMFormat != "CycloneDX" {
		t.Errorf("it is %q", sbom.BOMFormat)
	}
	listed := map[string]string{}
	for _, c := range sbom.Components {
		listed[c.Name] = c.Version
	}
	if len(info.Deps) < 10 || listed["std"] == "" {
		t.Fatalf("the binary has %d dependencies, and the SBOM says std %q", len(info.Deps), listed["std"])
	}
	for _, d := range info.Deps {
		if listed[d.Path] != d.Version {
			t.Errorf("%s %s is in the binary, and %q in the SBOM", d.Path, d.Version, listed[d.Path])
		}
	}
}

// checkSums sees that every file is listed with the sum that it has.
func checkSums(t *testing.T, dir string) {
	data, err := os.ReadFile(dir + "/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		want, name, _ := strings.Cut(lines.Text(), "  ")
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has another sum", name)
		}
		listed = append(listed, name)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "SHA256SUMS" && !slices.Contains(listed, e.Name()) {
			t.Errorf("%s has no sum", e.Name())
		}
	}
}
