package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oncegate/internal/config"
)

// Each test that stores.md names as package.TestName is there.
func TestStoresAreTested(t *testing.T) {
	page := storesPage(t)
	places := map[string]string{"e2e": "../e2e", "bench": "../bench", "openstore": "../internal/openstore", "lock": "../lock"}
	named := regexp.MustCompile("`(\\w+)\\.(Test\\w+)`").FindAllStringSubmatch(page, -1)
	if len(named) == 0 {
		t.Fatal("stores.md names no test")
	}
	for _, m := range named {
		dir, ok := places[m[1]]
		if !ok {
			dir = "../lock/" + m[1]
		}
		files, err := filepath.Glob(dir + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "\nfunc "+m[2]+"(t *testing.T)")
		}) {
			t.Errorf("stores.md names %s.%s, and there is no such test", m[1], m[2])
		}
	}
}

// The weaknesses that stores.md lists, those that a configuration may accept, and
// those that the stores say they look for, are the same.
func TestWeaknessesAreListed(t *testing.T) {
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([A-Za-z, ]+) \\|").FindAllStringSubmatch(storesPage(t), -1) {
		for of := range strings.SplitSeq(m[2], ", ") {
			listed[m[1]+" of "+of] = true
		}
	}
	for kind, is := range map[string]struct{ dir, name string }{
		"sqlite": {"sqlitelock", "SQLite"}, "postgres": {"pglock", "PostgreSQL"}, "mysql": {"mysqllock", "MySQL"}, "redis": {"redislock", "Redis"},
	} {
		text, err := os.ReadFile("../lock/" + is.dir + "/check.go")
		if err != nil {
			t.Fatal(err)
		}
		comment := regexp.MustCompile(`Its names? (?:are|is) ([a-z_, \n/]+)\.`).FindSubmatch(text)
		if comment == nil {
			t.Fatalf("%s does not say which weaknesses it looks for", is.dir)
		}
		said := append(regexp.MustCompile(`[a-z_]{3,}`).FindAllString(strings.ReplaceAll(string(comment[1]), " and ", " "), -1), "retention")
		said = slices.DeleteFunc(said, func(word string) bool { return word == "and" })
		slices.Sort(said)
		known := config.Weaknesses(kind)
		if !slices.Equal(said, known) {
			t.Errorf("%s looks for %v, and the configuration knows %v", is.dir, said, known)
		}
		for _, name := range known {
			of := fmt.Sprintf("%s of %s", name, is.name)
			if name == "retention" {
				of = "retention of any"
			}
			if !listed[of] {
				t.Errorf("stores.md does not list %s", of)
			}
		}
	}
}

func storesPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("stores.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
