-- +goose Up

-- Notes for operators. Creates the table of keys, the log of settlements and the
-- turns of sweepers. New tables only: nothing is locked, nothing is rewritten.
-- Times are microseconds since 1970 on this database's own clock. Scope and key
-- are BLOBs, because they compare as bytes: read them with CAST(scope AS TEXT).

CREATE TABLE semel_records (
	id              INTEGER PRIMARY KEY,
	scope           BLOB NOT NULL,
	idempotency_key BLOB NOT NULL,
	version         INTEGER NOT NULL, -- grows by one with each write
	state           INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4), -- 0 tombstone, 1 running, 2 done, 3 released, 4 unknown
	is_open         INTEGER NOT NULL, -- an earlier attempt has no known end
	generation      INTEGER NOT NULL, -- raised by "start over" alone
	operation_id    BLOB NOT NULL,    -- 16 bytes, what the bank sees as its key
	token           BLOB NOT NULL,
	attempt         INTEGER NOT NULL,
	raw_digest      BLOB NOT NULL,
	meaning_digest  BLOB NOT NULL,
	policy          TEXT NOT NULL,
	credential      BLOB NOT NULL,
	trace           TEXT NOT NULL,
	all_in_tx       INTEGER NOT NULL, -- the latest attempt works inside its transaction alone
	reply_started   INTEGER NOT NULL,
	reply_kept      INTEGER NOT NULL,
	created         INTEGER,
	first_started   INTEGER,
	claimed         INTEGER,
	renewed         INTEGER, -- when lease_end was set
	lease_end       INTEGER,
	finished        INTEGER,
	expires         INTEGER, -- NULL while running or unknown: those never expire
	status          INTEGER NOT NULL,
	header          BLOB NOT NULL, -- lines "Name: value"
	body            BLOB NOT NULL
);

CREATE UNIQUE INDEX semel_records_scope_key ON semel_records (scope, idempotency_key);

CREATE INDEX semel_records_operation ON semel_records (operation_id);

CREATE INDEX semel_records_expires ON semel_records (expires) WHERE expires IS NOT NULL;

CREATE INDEX semel_records_age ON semel_records (state, first_started);

-- One row: of many sweepers one is at work at a time.

CREATE TABLE semel_sweep (
	id    INTEGER PRIMARY KEY CHECK (id = 1),
	taken INTEGER NOT NULL -- when a sweeper last took its turn
);

INSERT INTO semel_sweep (id, taken) VALUES (1, 0);

CREATE TABLE semel_audit (
	id              INTEGER PRIMARY KEY AUTOINCREMENT,
	at              INTEGER NOT NULL,
	scope           BLOB NOT NULL,
	idempotency_key BLOB NOT NULL,
	attempt         INTEGER NOT NULL,
	settled_to      INTEGER NOT NULL, -- a state as above; 1 is the takeover before a settlement, 0 an erased reply
	actor           TEXT NOT NULL,
	reason          TEXT NOT NULL,
	override        INTEGER NOT NULL
);

CREATE INDEX semel_audit_scope_key ON semel_audit (scope, idempotency_key);

-- The log is append-only. To erase a person's data from it, drop the trigger
-- in the same transaction and create it again.

-- +goose StatementBegin
CREATE TRIGGER semel_audit_no_update BEFORE UPDATE ON semel_audit BEGIN
	SELECT RAISE(ABORT, 'semel_audit is append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER semel_audit_no_delete BEFORE DELETE ON semel_audit BEGIN
	SELECT RAISE(ABORT, 'semel_audit is append-only');
END;
-- +goose StatementEnd
