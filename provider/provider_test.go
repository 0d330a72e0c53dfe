package provider

import "testing"

func TestPresetsDecode(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if got, err := Get(p.Name); err != nil || got.Name != p.Name {
			t.Errorf("Get(%q) = %v, %v", p.Name, got, err)
		}
	}
}
