-- Moments are microseconds since 1970 by the host's clock. What a settle
-- changes may be indexed here, for an update in place is not lost by it: the
-- one index keeps the few open claims at hand among millions, the other what
-- is to be purged.
CREATE TABLE claims (
	namespace     TEXT    NOT NULL,
	scope         TEXT    NOT NULL,
	digest        BLOB    NOT NULL,
	key_text      TEXT    NOT NULL,
	role          INTEGER NOT NULL,
	names         BLOB,
	state         INTEGER NOT NULL,
	mark          INTEGER NOT NULL,
	reason        TEXT    NOT NULL,
	attempt       INTEGER NOT NULL,
	unanswered    INTEGER NOT NULL,
	token         BLOB    NOT NULL,
	version       BLOB    NOT NULL,
	lease_until   INTEGER NOT NULL,
	runs_until    INTEGER NOT NULL,
	due_at        INTEGER,
	group_key     TEXT    NOT NULL,
	first_seen    INTEGER NOT NULL,
	last_seen     INTEGER NOT NULL,
	written_at    INTEGER NOT NULL,
	deliveries    INTEGER NOT NULL,
	answer_status INTEGER NOT NULL,
	answer_header BLOB,
	expires_at    INTEGER,
	payload       BLOB,
	tags          BLOB,
	answer_body   BLOB,
	request       BLOB
) STRICT;

CREATE UNIQUE INDEX claims_key ON claims (namespace, scope, digest);

-- Running (1) and unknown (4).
CREATE INDEX claims_open ON claims (namespace, scope, digest) WHERE state IN (1, 4);

CREATE INDEX claims_expiry ON claims (namespace, expires_at) WHERE expires_at IS NOT NULL;
