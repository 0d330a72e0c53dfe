-- Settles leave the columns of every index as they were, so they are HOT
-- updates: no index grows by them. That is why state and expiry have none. Half
-- of each page is left free for them. When a record last came to be running or
-- unknown is opened_at, which no settle changes: what is open now is among what
-- was opened lately, but for a few that one can remember.
CREATE TABLE :claims (
	first_seen    timestamptz NOT NULL,
	last_seen     timestamptz NOT NULL,
	written_at    timestamptz NOT NULL,
	opened_at     timestamptz NOT NULL,
	lease_until   timestamptz NOT NULL,
	runs_until    timestamptz NOT NULL,
	expires_at    timestamptz,
	due_at        timestamptz,
	deliveries    bigint      NOT NULL,
	attempt       integer     NOT NULL,
	unanswered    integer     NOT NULL,
	answer_status integer     NOT NULL,
	role          smallint    NOT NULL,
	state         smallint    NOT NULL,
	mark          smallint    NOT NULL,
	namespace     text COLLATE "C" NOT NULL,
	scope         text COLLATE "C" NOT NULL,
	digest        bytea       NOT NULL,
	token         bytea       NOT NULL,
	version       bytea       NOT NULL,
	names         bytea,
	payload       bytea,
	reason        text COLLATE "C" NOT NULL,
	key_text      text COLLATE "C" NOT NULL,
	group_key     text COLLATE "C" NOT NULL,
	tags          bytea,
	answer_header bytea,
	answer_body   bytea,
	request       bytea,
	PRIMARY KEY (namespace, scope, digest)
) WITH (fillfactor = 50);

-- Not with the namespace in front: a plan that was made before the table was
-- analysed might take it for the better way to one record.
CREATE INDEX ON :claims (opened_at);
