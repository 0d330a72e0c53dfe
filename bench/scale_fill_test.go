package bench

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oncegate/lock"
)

// Claims are filled in behind oncegate's back, since it would take hours by its
// own way: each is a copy of one that oncegate made, under another key, with
// another token and version, at another time.

// longTimeout is what the store may take, on a machine that does much else.
const longTimeout = time.Minute

// copied is what is not copied as it is, each column with its expression.
type copied map[string]string

// from writes the columns of a table, and what is selected for each out of m.
func (c copied) from(all []string) (columns, expressions string) {
	values := make([]string, len(all))
	for i, name := range all {
		if values[i] = "m." + name; c[name] != "" {
			values[i] = c[name]
		}
	}
	return strings.Join(all, ", "), strings.Join(values, ", ")
}

// columnsOf asks a table for its columns.
func columnsOf(t *testing.T, db *sql.DB, table string) []string {
	t.Helper()
	rows, err := db.Query("SELECT * FROM " + table + " LIMIT 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all, err := rows.Columns()
	if err := errors.Join(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	return all
}

func run(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range statements {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%.200s: %v", s, err)
		}
	}
}

// fillPostgres inserts by the time of the claims, as they would have come, and
// makes the primary key afterwards, its pages as full as random inserts leave
// them.
func fillPostgres(t *testing.T, db *sql.DB, n int) {
	at := fmt.Sprintf("now() - interval '%d s' * (1 - i / %d.0)", int(2*retention.Seconds()), n)
	columns, values := copied{
		"digest": "sha256(convert_to(k, 'UTF8'))", "key_text": "k", "token": "uuid_send(gen_random_uuid())",
		"version": "uuid_send(gen_random_uuid())", "first_seen": "t", "last_seen": "t", "written_at": "t", "opened_at": "t",
		"lease_until": "t", "runs_until": "t", "expires_at": fmt.Sprintf("t + interval '%d s'", int(retention.Seconds())),
	}.from(columnsOf(t, db, "oncegate_claims"))
	run(t, db,
		"CREATE TEMPORARY TABLE model AS SELECT * FROM oncegate_claims WHERE key_text = '"+eventText("first", 0)+"'",
		"ALTER TABLE oncegate_claims DROP CONSTRAINT oncegate_claims_pkey",
		fmt.Sprintf(`INSERT INTO oncegate_claims (%s) SELECT %s FROM model m, (SELECT i, 'evt_1NxVfill__' || lpad(i::text, 14, '0') AS k, %s AS t
			FROM generate_series(1, %d) AS i) AS events`, columns, values, at, n),
		"ALTER TABLE oncegate_claims ADD CONSTRAINT oncegate_claims_pkey PRIMARY KEY (namespace, scope, digest) WITH (fillfactor = 70)",
		"VACUUM (ANALYZE) oncegate_claims", "CHECKPOINT",
		// A server that has run for a while has this in its memory.
		"CREATE EXTENSION pg_prewarm", "SELECT pg_prewarm('oncegate_claims_pkey')")
}

// fillMariaDB inserts into a table that is empty, which the server then builds
// sorted, its pages as full as random inserts leave them.
func fillMariaDB(t *testing.T, db *sql.DB, n int) {
	micros := "timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(6))"
	at := fmt.Sprintf("%s - cast((1e0 - 1e0 * seq / %d) * %d AS SIGNED)", micros, n, 2*retention.Microseconds())
	columns, values := copied{
		"digest": "unhex(sha2(k, 256))", "key_text": "k", "token": "unhex(md5(concat('t', k)))", "version": "unhex(md5(concat('v', k)))",
		"first_seen": "t", "last_seen": "t", "written_at": "t", "lease_until": "t", "runs_until": "t",
		"expires_at": fmt.Sprintf("t + %d", retention.Microseconds()),
	}.from(columnsOf(t, db, "oncegate_claims"))
	run(t, db,
		"CREATE TEMPORARY TABLE model AS SELECT * FROM oncegate_claims WHERE key_text = '"+eventText("first", 0)+"'",
		"TRUNCATE oncegate_claims",
		"SET GLOBAL innodb_fill_factor = 70", "SET unique_checks = 0, foreign_key_checks = 0",
		fmt.Sprintf(`INSERT INTO oncegate_claims (%s) SELECT %s FROM model m, (SELECT concat('evt_1NxVfill__', lpad(seq, 14, '0')) AS k, %s AS t
			FROM seq_1_to_%d) AS events`, columns, values, at, n),
		"SET GLOBAL innodb_fill_factor = 100", "ANALYZE TABLE oncegate_claims")
}

// fillSQLite inserts in one transaction that is never undone, on a connection
// with much memory.
func fillSQLite(t *testing.T, path string, n int) {
	db := database(t, "sqlite", "file:"+path+"?_pragma=synchronous(OFF)&_pragma=cache_size(-1500000)&_pragma=busy_timeout(60000)")
	all := columnsOf(t, db, "claims")
	columns, values := copied{
		"digest": "?1", "key_text": "?2", "token": "randomblob(16)", "version": "randomblob(16)",
		"first_seen": "?3", "last_seen": "?3", "written_at": "?3", "lease_until": "?3", "runs_until": "?3", "expires_at": "?3 + ?4",
	}.from(all)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	insert, err := tx.Prepare(fmt.Sprintf("INSERT INTO claims (%s) SELECT %s FROM claims m WHERE rowid = 1", columns, values))
	if err != nil {
		t.Fatal(err)
	}
	defer insert.Close()
	for i := 1; i <= n; i++ {
		text := eventText("fill", i)
		digest := sha256.Sum256([]byte(text))
		if _, err := insert.Exec(digest[:], text, cameAt(i, n).UnixMicro(), retention.Microseconds()); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	run(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
}

// cameAt is when the i-th of n claims came.
func cameAt(i, n int) time.Time {
	return time.Now().Add(-2*retention + time.Duration(float64(2*retention)*float64(i)/float64(n)))
}

// fillRedis sets copies of a value. Nothing is synced meanwhile, and nothing
// expires before the purge has it.
func fillRedis(t *testing.T, c *redis.Client, n int) {
	text := eventText("first", 0)
	k := lock.KeyOf(namespace, scope, text)
	model, err := c.Get(t.Context(), redisKey(k.Digest)).Result()
	if err != nil {
		t.Fatal(err)
	}
	configure := func(words ...any) {
		if err := c.Do(context.WithoutCancel(t.Context()), words...).Err(); err != nil {
			t.Fatalf("%v: %v", words, err)
		}
	}
	configure("CONFIG", "SET", "appendfsync", "no")
	for chunk := range slices.Chunk(upTo(n), 2000) {
		p := c.Pipeline()
		for _, i := range chunk {
			text := eventText("fill", i)
			at := cameAt(i, n)
			// A version; then, after the state, moments: lease, runs until, due,
			// expiry, first and last seen, written.
			value := []byte(strings.ReplaceAll(model, eventText("first", 0), text))
			rand.Read(value[1:17])
			for place, moment := range []float64{micros(at), micros(at), 0, micros(at.Add(retention)), micros(at), micros(at), micros(at)} {
				binary.LittleEndian.PutUint64(value[18+8*place:], math.Float64bits(moment))
			}
			p.Set(t.Context(), redisKey(sha256.Sum256([]byte(text))), value, 2*retention)
		}
		if _, err := p.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	configure("CONFIG", "SET", "appendfsync", "always")
}

func micros(t time.Time) float64 { return float64(t.UnixMicro()) }

func redisKey(d lock.Digest) string {
	return fmt.Sprintf("oncegate:{%s}:%s:%s:%s", hex.EncodeToString(d[:1]), namespace, scope, base64.RawURLEncoding.EncodeToString(d[:]))
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}
