package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCases holds the list of field failures in testing.md to the tests that
// name them.
func TestCases(t *testing.T) {
	page, err := os.ReadFile("testing.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^\| (B\d\d) \|`).FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1])
	}
	if !slices.IsSorted(listed) || len(listed) == 0 {
		t.Errorf("the cases are out of order: %v", listed)
	}
	named := map[string]bool{}
	id := regexp.MustCompile(`\bB\d\d\b`)
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		}
		isTest := strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".txtar") || strings.HasPrefix(path, "../lock/locktest/")
		if d.IsDir() || !isTest || path == "../docs/testing_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range append(id.FindAllString(string(text), -1), id.FindAllString(strings.ReplaceAll(path, "_", " "), -1)...) {
			named[found] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range listed {
		if !named[c] {
			t.Errorf("%s is listed, and no test names it", c)
		}
	}
	for c := range named {
		if !slices.Contains(listed, c) {
			t.Errorf("%s is named by a test, and not listed", c)
		}
	}
}
