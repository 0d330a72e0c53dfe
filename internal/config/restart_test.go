package config

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestNeedsRestart(t *testing.T) {
	c := Config{Listen: "a", Health: "b", Admin: "c", StateDir: "/d", Namespace: "n", LogLevel: "info", Store: Store{Kind: "redis"},
		EvidenceRetention: time.Hour, StoreTimeout: time.Second, EncryptionKeys: []EncryptionKey{{ID: "k"}}}
	same := c
	same.LogLevel, same.Routes = "debug", []*Route{{Name: "new"}}
	if got := c.NeedsRestart(&same); got != nil {
		t.Errorf("got %v for what can be changed", got)
	}
	other := Config{}
	if got, want := c.NeedsRestart(&other), []string{"listen", "health", "admin", "state_dir", "store", "store_timeout", "namespace", "encryption_keys", "evidence_retention"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// Every field of the store counts, those that are added later too.
	for i := range reflect.TypeFor[Store]().NumField() {
		var changed Store
		switch f := reflect.ValueOf(&changed).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int:
			f.SetInt(1)
		default:
			f.Set(reflect.ValueOf([]string{"x"}))
		}
		if changed.equal(Store{}) {
			t.Errorf("a change of Store.%s is not seen", reflect.TypeFor[Store]().Field(i).Name)
		}
	}
}
