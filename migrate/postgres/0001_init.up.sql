-- +goose Up

-- Notes for operators. Creates the table of keys, the log of settlements and the
-- turns of sweepers. New tables only: nothing is locked, nothing is rewritten.
-- Times are microseconds since 1970 on this database's own clock: read them with
-- to_timestamp(expires / 1e6). Scope and key are bytea, because they compare as
-- bytes: read them with convert_from(scope, 'UTF8'), or encode(scope, 'escape').

-- The fill factor leaves room for a record to be finished in the page that it is
-- in, so that no index is written.

CREATE TABLE semel_records (
	scope           bytea NOT NULL,
	idempotency_key bytea NOT NULL,
	version         bigint NOT NULL, -- grows by one with each write
	state           smallint NOT NULL CHECK (state BETWEEN 0 AND 4), -- 0 tombstone, 1 running, 2 done, 3 released, 4 unknown
	is_open         boolean NOT NULL, -- an earlier attempt has no known end
	generation      bigint NOT NULL, -- raised by "start over" alone
	operation_id    bytea NOT NULL, -- 16 bytes, what the bank sees as its key
	token           bytea NOT NULL,
	attempt         bigint NOT NULL,
	raw_digest      bytea NOT NULL,
	meaning_digest  bytea NOT NULL,
	policy          bytea NOT NULL,
	credential      bytea NOT NULL,
	trace           bytea NOT NULL,
	all_in_tx       boolean NOT NULL, -- the latest attempt works inside its transaction alone
	reply_started   boolean NOT NULL,
	reply_kept      boolean NOT NULL,
	created         bigint,
	first_started   bigint,
	claimed         bigint,
	renewed         bigint, -- when lease_end was set
	lease_end       bigint,
	finished        bigint,
	expires         bigint, -- NULL while running or unknown: those never expire
	status          integer NOT NULL,
	header          bytea NOT NULL, -- lines "Name: value"
	body            bytea NOT NULL,
	PRIMARY KEY (scope, idempotency_key)
) WITH (fillfactor = 80);

CREATE INDEX semel_records_operation ON semel_records (operation_id);

CREATE INDEX semel_records_expires ON semel_records (generation, expires) WHERE expires IS NOT NULL;

CREATE INDEX semel_records_age ON semel_records (state, first_started);

-- One row: of many sweepers one is at work at a time.

CREATE TABLE semel_sweep (
	id    smallint PRIMARY KEY CHECK (id = 1),
	taken bigint NOT NULL -- when a sweeper last took its turn
);

INSERT INTO semel_sweep (id, taken) VALUES (1, 0);

CREATE TABLE semel_audit (
	id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at              bigint NOT NULL,
	scope           bytea NOT NULL,
	idempotency_key bytea NOT NULL,
	attempt         bigint NOT NULL,
	settled_to      smallint NOT NULL, -- a state as above; 1 is the takeover before a settlement, 0 an erased reply
	actor           text NOT NULL,
	reason          text NOT NULL,
	override        boolean NOT NULL
);

CREATE INDEX semel_audit_scope_key ON semel_audit (scope, idempotency_key);

-- The log is append-only. To erase a person's data from it, drop the trigger
-- in the same transaction and create it again.

-- +goose StatementBegin
CREATE FUNCTION semel_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'semel_audit is append-only';
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER semel_audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON semel_audit
	FOR EACH STATEMENT EXECUTE FUNCTION semel_audit_refuse();
