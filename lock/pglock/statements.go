package pglock

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"oncegate/lock/internal/columns"
)

// statements are the texts of what is sent, with the names of the tables.
type statements struct {
	schema string // quoted; empty where none was given
	claims string // quoted
	marks  string // quoted: the table of migrations

	insert, update, confirm, standing, read, list, opened, stillOpen string
}

const (
	times = `lease_until, runs_until, due_at, expires_at, first_seen, last_seen, written_at`

	// ages and left give times as a Row wants them.
	left = `left_until(lease_until), left_until(runs_until), left_until(due_at), left_until(expires_at),
		age_of(first_seen), age_of(last_seen), age_of(written_at)`
)

// spans spells out left_until and age_of: microseconds from now, by now(),
// which is when the transaction began.
func spans(text string) string {
	for _, column := range strings.Split(times, ", ") {
		text = strings.ReplaceAll(text, "left_until("+column+")", "(extract(epoch FROM "+column+" - now()) * 1000000)::int8")
		text = strings.ReplaceAll(text, "age_of("+column+")", "(extract(epoch FROM now() - "+column+") * 1000000)::int8")
	}
	return text
}

func statementsFor(schema string) statements {
	s := statements{claims: table(schema, "oncegate_claims"), marks: table(schema, "oncegate_migrations")}
	if schema != "" {
		s.schema = pgx.Identifier{schema}.Sanitize()
	}
	us := " * interval '1 microsecond'"

	// Parameters: Plain; lease, runs until, due and expiry as offsets.
	s.insert = `INSERT INTO ` + s.claims + ` AS c (` + columns.Plain + `, ` + times + `, opened_at)
	VALUES ($1, $2, $3, $4, $5::int8, $6, $7::int8, $8::int8, $9, $10::int8, $11::int8, $12, $13, $14, $15::int8,
		$16::int8, $17, $18, $19, $20, $21,
		now() + $22::int8` + us + `, now() + $23::int8` + us + `, now() + $24::int8` + us + `, now() + $25::int8` + us + `,
		now(), now(), now(), now())
	ON CONFLICT (` + columns.Key + `) DO UPDATE SET (` + columns.Other + `, ` + times + `, opened_at) =
		(excluded.key_text, excluded.role, excluded.names, excluded.state, excluded.mark, excluded.reason,
		excluded.attempt, excluded.unanswered, excluded.token, excluded.version, excluded.group_key,
		excluded.deliveries, excluded.answer_status, excluded.answer_header, excluded.answer_body, excluded.request,
		excluded.payload, excluded.tags, excluded.lease_until, excluded.runs_until, excluded.due_at,
		excluded.expires_at, excluded.first_seen, excluded.last_seen, excluded.written_at, excluded.opened_at)
	WHERE c.expires_at <= now() AND c.version <> excluded.version
	RETURNING 0::int8, 0::int8`

	// Parameters: Plain; the offsets; whether seen; the version that is expected.
	s.update = spans(`UPDATE ` + s.claims + ` SET key_text = $4, role = $5::int8, names = $6, state = $7::int8,
		mark = $8::int8, reason = $9, attempt = $10::int8, unanswered = $11::int8, token = $12, version = $13,
		group_key = $14, deliveries = $15::int8, answer_status = $16::int8, answer_header = $17, answer_body = $18,
		request = $19, payload = $20, tags = $21,
		lease_until = now() + $22::int8` + us + `, runs_until = now() + $23::int8` + us + `,
		due_at = now() + $24::int8` + us + `, expires_at = now() + $25::int8` + us + `,
		last_seen = CASE WHEN $26::bool THEN now() ELSE last_seen END, written_at = now(),
		opened_at = CASE WHEN $7::int8 IN (1, 4) AND state NOT IN (1, 4) THEN now() ELSE opened_at END
	WHERE namespace = $1 AND scope = $2 AND digest = $3 AND version = $27 AND (expires_at IS NULL OR expires_at > now())
	RETURNING age_of(first_seen), age_of(last_seen)`)

	// Parameters: the key, the version that stands.
	s.confirm = `UPDATE ` + s.claims + ` SET written_at = written_at
	WHERE namespace = $1 AND scope = $2 AND digest = $3 AND version = $4`

	record := spans(`SELECT ` + columns.Plain + `, ` + left + ` FROM ` + s.claims)
	s.read = record + ` WHERE namespace = $1 AND scope = $2 AND digest = $3`

	// What stands after a change, unless the same transaction wrote it: now()
	// is when that began. Parameters: the key, the version that was to be.
	s.standing = s.read + ` AND (version <> $4 OR written_at <> now())`

	// What is running or unknown: of what was opened since a moment, and of
	// the keys given.
	s.opened = `SELECT scope, digest FROM ` + s.claims + ` WHERE namespace = $1 AND state IN (1, 4)`
	s.stillOpen = s.opened + ` AND (scope, digest) IN (SELECT * FROM unnest($2::text[], $3::bytea[]))`

	s.list = strings.Replace(record, "answer_body, request", "NULL::bytea, NULL::bytea", 1)
	return s
}

func table(schema, name string) string {
	if schema == "" {
		return name
	}
	return pgx.Identifier{schema, name}.Sanitize()
}
