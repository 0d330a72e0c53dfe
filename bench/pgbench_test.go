package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"oncegate/internal/testenv"
)

// twoStatements begins and settles one event in the table that oncegate made,
// as its PostgreSQL store does when nothing else is under way.
const twoStatements = `\set id random(1, 1000000000000000)
INSERT INTO oncegate_claims (namespace, scope, digest, key_text, role, state, mark, reason, attempt, unanswered, token, version, group_key,
	deliveries, answer_status, payload, lease_until, runs_until, first_seen, last_seen, written_at, opened_at)
VALUES ('pgbench', 'stripe', sha256(:id::text::bytea), 'evt', 0, 1, 0, '', 1, 0, '\x00112233445566778899aabbccddeeff', '\x00112233445566778899aabbccddeeff', '',
	1, 0, sha256(:id::text::bytea), now() + interval '30 s', now() + interval '150 s', now(), now(), now(), now())
ON CONFLICT (namespace, scope, digest) DO NOTHING;
UPDATE oncegate_claims SET state = 2, reason = 'answered', version = '\xffeeddccbbaa99887766554433221100', answer_status = 200,
	answer_header = '\x010000', answer_body = '\x01007b227265636569766564223a747275657d', lease_until = now(), runs_until = now(),
	expires_at = now() + interval '35 d', written_at = now()
WHERE namespace = 'pgbench' AND scope = 'stripe' AND digest = sha256(:id::text::bytea) AND version = '\x00112233445566778899aabbccddeeff';
`

// pgbench measures what the server does by itself, in events per second: the
// limit of a store that makes a round trip for each change.
func pgbench(t *testing.T, pg *testenv.PostgresServer, database string, conns int) float64 {
	script := filepath.Join(t.TempDir(), "two.sql")
	if err := os.WriteFile(script, []byte(twoStatements), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("pgbench")
	if err != nil {
		t.Fatalf("pgbench comes with Debian's package postgresql: %v", err)
	}
	seconds := max(1, int((each.Seconds()+0.5)*float64(*rounds)))
	out, err := exec.Command(program, "-n", "-M", "prepared", "-c", strconv.Itoa(conns), "-j", "2",
		"-T", strconv.Itoa(seconds), "-f", script, pg.URL(database)).CombinedOutput()
	if err != nil {
		t.Fatalf("pgbench: %v\n%s", err, out)
	}
	found := regexp.MustCompile(`tps = ([0-9.]+) `).FindSubmatch(out)
	if found == nil {
		t.Fatalf("pgbench says no tps:\n%s", out)
	}
	tps, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(fmt.Errorf("pgbench: %w", err))
	}
	return tps
}
