-- +goose Up

-- Notes for operators. Creates the table of keys, the log of settlements and the
-- turns of sweepers. New tables only: nothing is locked, nothing is rewritten.
-- Each statement is a commit of its own here, and may be run again. Times are
-- microseconds since 1970 on this database's own clock: read them with
-- FROM_UNIXTIME(expires/1e6). Scope and key are VARBINARY, because they compare
-- as bytes, in case and spaces too: read them with CONVERT(scope USING utf8mb4).

CREATE TABLE IF NOT EXISTS semel_records (
	scope           VARBINARY(1024) NOT NULL,
	idempotency_key VARBINARY(255) NOT NULL,
	version         BIGINT NOT NULL COMMENT 'grows by one with each write',
	state           TINYINT NOT NULL COMMENT '0 tombstone, 1 running, 2 done, 3 released, 4 unknown' CHECK (state BETWEEN 0 AND 4),
	is_open         BOOLEAN NOT NULL COMMENT 'an earlier attempt has no known end',
	generation      BIGINT NOT NULL COMMENT 'raised by "start over" alone',
	operation_id    BINARY(16) NOT NULL COMMENT 'what the bank sees as its key',
	token           BINARY(16) NOT NULL,
	attempt         BIGINT NOT NULL,
	raw_digest      BINARY(32) NOT NULL,
	meaning_digest  BINARY(32) NOT NULL,
	policy          BLOB NOT NULL,
	credential      BINARY(32) NOT NULL,
	trace           BLOB NOT NULL,
	all_in_tx       BOOLEAN NOT NULL COMMENT 'the latest attempt works inside its transaction alone',
	reply_started   BOOLEAN NOT NULL,
	reply_kept      BOOLEAN NOT NULL,
	created         BIGINT,
	first_started   BIGINT,
	claimed         BIGINT,
	renewed         BIGINT COMMENT 'when lease_end was set',
	lease_end       BIGINT,
	finished        BIGINT,
	expires         BIGINT COMMENT 'NULL while running or unknown: those never expire',
	status          INT NOT NULL,
	header          LONGBLOB NOT NULL COMMENT 'lines "Name: value"',
	body            LONGBLOB NOT NULL,
	PRIMARY KEY (scope, idempotency_key),
	KEY semel_records_operation (operation_id),
	KEY semel_records_expires (generation, expires),
	KEY semel_records_age (state, first_started)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- One row: of many sweepers one is at work at a time.

CREATE TABLE IF NOT EXISTS semel_sweep (
	id    TINYINT NOT NULL PRIMARY KEY CHECK (id = 1),
	taken BIGINT NOT NULL COMMENT 'when a sweeper last took its turn'
) ENGINE=InnoDB;

INSERT IGNORE INTO semel_sweep (id, taken) VALUES (1, 0);

CREATE TABLE IF NOT EXISTS semel_audit (
	id              BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	at              BIGINT NOT NULL,
	scope           VARBINARY(1024) NOT NULL,
	idempotency_key VARBINARY(255) NOT NULL,
	attempt         BIGINT NOT NULL,
	settled_to      TINYINT NOT NULL COMMENT 'a state as above; 1 is the takeover before a settlement, 0 an erased reply',
	actor           TEXT NOT NULL,
	reason          TEXT NOT NULL,
	override        BOOLEAN NOT NULL,
	KEY semel_audit_scope_key (scope, idempotency_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4;

-- The log is append-only. To erase a person's data from it, drop the trigger
-- and create it again.

CREATE OR REPLACE TRIGGER semel_audit_no_update BEFORE UPDATE ON semel_audit
	FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'semel_audit is append-only';

CREATE OR REPLACE TRIGGER semel_audit_no_delete BEFORE DELETE ON semel_audit
	FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'semel_audit is append-only';
