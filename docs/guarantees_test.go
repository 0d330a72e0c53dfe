package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuaranteesAreTested holds the pages that say what is guaranteed to the
// tests that they name.
func TestGuaranteesAreTested(t *testing.T) {
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(text, -1) {
			declared[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"guarantees.md", "last-inch.md"} {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1) {
			if !declared[test[1]] {
				t.Errorf("%s names %s, and there is no such test", name, test[1])
			}
		}
	}
}
