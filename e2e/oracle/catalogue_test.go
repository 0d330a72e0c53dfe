package oracle

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"oncegate/provider"
)

// TestCatalogueSaysWhatWasProved: a preset names an SDK where one is asked, and
// nowhere else. Package provider holds the published signatures to the presets
// that name them. What only shares the scheme of another says so.
func TestCatalogueSaysWhatWasProved(t *testing.T) {
	presets, err := provider.All()
	if err != nil {
		t.Fatal(err)
	}
	inGo := slices.Collect(maps.Keys(goSDKs))
	inNode := slices.Concat(slices.Collect(maps.Keys(nodeSDKs)), slices.Collect(maps.Keys(tokenSDKs)))
	proved := 0
	for _, p := range presets {
		for says, asked := range map[string][]string{"github.com/": inGo, "npm ": inNode} {
			if strings.Contains(p.Oracle, says) != slices.Contains(asked, p.Name) {
				t.Errorf("%s: the preset says %q, and an oracle of %q is asked: %v", p.Name, p.Oracle, says, slices.Contains(asked, p.Name))
			}
		}
		if p.Oracle != "" && !strings.HasPrefix(p.Oracle, "like ") {
			proved++
		}
	}
	if proved < 60 {
		t.Errorf("%d presets are proved by others", proved)
	}
	t.Logf("%d of %d presets are proved by others", proved, len(presets))
}
