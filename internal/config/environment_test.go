package config

import "testing"

// A password is taken as it is, but for the newline that a Secret made by echo ends in.
func TestPasswordFromEnvironment(t *testing.T) {
	for password, want := range map[string]string{
		" p@ss/w#rd ": "postgres://u:%20p%40ss%2Fw%23rd%20@127.0.0.1:1/db",
		"pw\n":        "postgres://u:pw@127.0.0.1:1/db",
		"$x${y}%41\t": "postgres://u:$x$%7By%7D%2541%09@127.0.0.1:1/db",
	} {
		c, err := Load(Options{
			Env: []string{
				"ONCEGATE_STORE=postgres://127.0.0.1:1/db", "ONCEGATE_STORE_USER=u", "ONCEGATE_STORE_PASSWORD=" + password,
				"ONCEGATE_NAMESPACE=shop", "ONCEGATE_STATE_DIR=/srv", "STRIPE_WEBHOOK_SECRET=s",
			},
			Flags: Flags{Upstream: "http://127.0.0.1:8000", Routes: []string{"stripe=/stripe/webhook"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if c.Store.URL != want {
			t.Errorf("%q: %s", password, c.Store.URL)
		}
	}
}
