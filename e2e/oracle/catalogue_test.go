package oracle

import (
	"slices"
	"strings"
	"testing"

	"oncegate/provider"
)

// vectors are the presets that are held against published signatures, in
// package provider.
var vectors = []string{"bitbucket", "wise", "midtrans", "payfast", "github", "hubspot"}

// TestCatalogueSaysWhatWasProved: a preset names an oracle where one is asked,
// and nowhere else. What only shares the scheme of another says so.
func TestCatalogueSaysWhatWasProved(t *testing.T) {
	presets, err := provider.All()
	if err != nil {
		t.Fatal(err)
	}
	proved := 0
	for _, p := range presets {
		_, inGo := goSDKs[p.Name]
		_, inNode := nodeSDKs[p.Name]
		asked := inGo || inNode || slices.Contains(vectors, p.Name)
		if asked {
			proved++
		}
		if says := p.Oracle != "" && !strings.HasPrefix(p.Oracle, "like "); says != asked {
			t.Errorf("%s: the preset says %q, and an oracle is asked: %v", p.Name, p.Oracle, asked)
		}
	}
	if proved < 30 {
		t.Errorf("%d presets are proved by others", proved)
	}
	t.Logf("%d of %d presets are proved by others", proved, len(presets))
}
