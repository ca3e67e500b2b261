package sqltext

import (
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

func refused(d *Dialect, query string) bool { return d.Look(query).Refused != "" }

func TestStatementsThatWouldEndTheTransactionAreRefused(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"COMMIT",
		"commit;",
		"END",
		"End Transaction",
		"ROLLBACK",
		"ROLLBACK;",
		"ROLLBACK TRANSACTION",
		"BEGIN",
		"BEGIN IMMEDIATE",
		"START TRANSACTION",
		" \n\t;; commit",
		"-- a comment\nCOMMIT",
		"/* a\ncomment */ COMMIT",
		"/**/COMMIT/**/",
		"SELECT 1; COMMIT",
		"SELECT ';'; COMMIT",
		"SELECT 'it''s'; COMMIT",
		`SELECT "a;b" FROM t; COMMIT`,
		"SELECT `a;b` FROM t; COMMIT",
		"SELECT [a;b] FROM t; COMMIT",
		"SELECT 1 -- ;\n; COMMIT",
		"SELECT 1; ROLLBACK -- TO\n; SELECT 2",
		"\ufeffCOMMIT",
		"SELECT 1;\ufeff\ufeff COMMIT",
		"-- a comment\n\ufeff/* and one */\ufeffCOMMIT",
		"\x00COMMIT",
		"SELECT $a('); COMMIT; --')",
		"SELECT @a([); COMMIT; --])",
		"SELECT #a(--); COMMIT",
		"SELECT :a::b(/*); COMMIT",
		"SELECT $('a'); COMMIT",
		"SELECT ?1; COMMIT",
	} {
		assert.True(t, refused(&SQLite, query), "%q is refused", query)
	}
}

func TestOtherStatementsAreNot(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"",
		";",
		"SELECT 1",
		"INSERT INTO t VALUES ('COMMIT')",
		"INSERT INTO t VALUES ('; COMMIT')",
		"INSERT INTO t VALUES ('it''s; COMMIT')",
		"INSERT INTO t VALUES ('unfinished; COMMIT",
		`SELECT "; COMMIT"`,
		"SELECT 1 -- ; COMMIT",
		"SELECT 1 -- ; COMMIT\n",
		"SELECT 1 /* ; COMMIT */",
		"SELECT 1 /* ; COMMIT",
		"SELECT CASE WHEN a THEN b END FROM t",
		"SELECT commit FROM t",
		"commits",
		"committed()",
		"SAVEPOINT a",
		"RELEASE a",
		"ROLLBACK TO a",
		"rollback to savepoint a",
		"ROLLBACK /* not all */ TO a",
		"SELECT é; SELECT 'é'",
		"COMMIT\ufeff", // is no keyword
		"SELECT '\ufeffCOMMIT'",
		"SELECT $a(;COMMIT;)",
		"SELECT $a, @a, :a, ?, ?1 FROM t",
		"SELECT a$b FROM t",
	} {
		assert.True(t, !refused(&SQLite, query), "%q is not refused", query)
	}
}

// FuzzLook holds the two ends: a COMMIT after whatever ends is
// refused, and one inside a quoted text is not.
func FuzzLook(f *testing.F) {
	for _, seed := range []string{"SELECT 1", "a''b", "--", "/*", "[x]", "`", "\"", ";", "é\x00\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := "SELECT '" + strings.ReplaceAll(s, "'", "''") + "'"
		assert.True(t, !refused(&SQLite, quoted), "%q is not refused", quoted)
		commits := quoted + "; COMMIT"
		assert.True(t, refused(&SQLite, commits), "%q is refused", commits)
		for _, d := range []*Dialect{&SQLite, &PostgreSQL, &MariaDB} {
			assert.Equal(t, refused(d, "SELECT 1; "+s), refused(d, s), "after another statement, and alone")
		}
	})
}

func TestDialectsRefuseWhatEndsATransactionThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect *Dialect
		name    string
		refused []string
		not     []string
	}{
		{&PostgreSQL, "PostgreSQL", []string{
			"ABORT",
			"Rollback Work",
			"BEGIN ISOLATION LEVEL SERIALIZABLE",
			"/*/ still one */COMMIT",
			`SELECT 'C:\'; COMMIT`,
			"SELECT $a$ $$ ' $a$; COMMIT",
			"SELECT a$1; COMMIT --$1",
			"SELECT 1 -- ;\r; COMMIT",
			"PREPARE TRANSACTION 'x'",
			"COMMIT AND CHAIN",
			"-- a\rCOMMIT",
			"/* a /* nested */ comment */ COMMIT",
			"SELECT $$ ; $$; COMMIT",
			"SELECT $a$ $b$ ; $a$; COMMIT",
			`SELECT E'it\'s'; COMMIT`,
			`SELECT '\''; COMMIT; --'`, // where standard_conforming_strings is off
			`SELECT 'it\'s'; COMMIT`,
			`SELECT e'\\'; COMMIT`,
			`SELECT 'a\'; COMMIT`, // a backslash is one there
			"SELECT a[1]; COMMIT",
			"SELECT a['[']; COMMIT",
			"SELECT $1; COMMIT",
			"SELECT $1, $2; COMMIT",
			`SELECT "a;""b"; COMMIT`,
			"SELECT ` ; COMMIT",
			"SELECT a$b; COMMIT",
		}, []string{
			"PREPARE q AS SELECT 1",
			"DO $body$ BEGIN NULL; END $body$",
			"SELECT begin FROM commit",
			"SELECT 1 /* /* */ ; COMMIT */",
			"/* /* */ COMMIT */ SELECT 1",
			"SELECT $$; COMMIT$$",
			"SELECT $a$; COMMIT; $$ $b$ $a$",
			"SELECT $é$; COMMIT$é$",
			`SELECT E'\'; COMMIT'`,
			`INSERT INTO t VALUES (E'\\\'; COMMIT')`,
			"DO $$ BEGIN NULL; END $$",
			"SELECT 1 # 2", // an operator
			"ROLLBACK TRANSACTION TO SAVEPOINT a",
			"CREATE TABLE t (a int)",
		}},
		{&MariaDB, "MariaDB", []string{
			"CREATE TABLE t (a INT)",
			"create or replace table t (a INT)",
			"DROP TABLE t",
			"ALTER TABLE t ADD b INT",
			"TRUNCATE t",
			"RENAME TABLE t TO u",
			"LOCK TABLES t WRITE",
			"UNLOCK TABLES",
			"SET autocommit = 1",
			"SET @a = 1, SESSION autocommit = 0",
			"SET @@session.autocommit = 1",
			"SET PASSWORD = ''",
			"SET GLOBAL max_connections = 1",
			"SET @a = 1, GLOBAL max_connections = 1",
			"SET @@global.max_connections = 1",
			"GRANT ALL ON t TO u",
			"ANALYZE TABLE t",
			"ANALYZE LOCAL TABLE t",
			"LOAD INDEX INTO CACHE t",
			"FLUSH TABLES",
			"XA END 'x'",
			"BEGIN NOT ATOMIC COMMIT; END",
			"# a comment\nCOMMIT",
			"#\nCOMMIT",
			"-- a comment\nCOMMIT",
			"--\nCOMMIT",
			"/*! COMMIT */",
			"/*!50000 COMMIT */",
			"/*M!100100 COMMIT */",
			"SELECT 1 /*! ; COMMIT */",
			"SELECT 1, 2, 3, 4, 5 /*!99999 a */ FROM t",
			`SELECT 'it\'s'; COMMIT`,
			`SELECT "a\"b"; COMMIT`,
			"SELECT `a\\`; COMMIT",
			"SELECT 5--1; COMMIT", // no comment: a minus and a sign
			"/* a /* comment */ COMMIT",
			"SELECT @a; COMMIT",
		}, []string{
			"CREATE TEMPORARY TABLE t (a INT)",
			"CREATE OR REPLACE TEMPORARY TABLE t (a INT)",
			"DROP TEMPORARY TABLE t",
			"ANALYZE SELECT 1",
			"LOAD DATA INFILE 'x' INTO TABLE t",
			"SET @a = 1",
			"SET NAMES utf8mb4",
			`SELECT '\'; COMMIT'`, // may be a COMMIT, and is asked about
			`SELECT "\"; COMMIT"`,
			"SELECT 1 # ; COMMIT",
			"SELECT 1 -- ; COMMIT",
			"SELECT ':=', @a := 1",
			"CALL pay()",
			"INSERT INTO t VALUES ('autocommit')",
		}},
	} {
		for _, query := range c.refused {
			assert.True(t, refused(c.dialect, query), "%s: %q is refused", c.name, query)
		}
		for _, query := range c.not {
			assert.True(t, !refused(c.dialect, query), "%s: %q is not refused", c.name, query)
		}
	}
}

func TestMariaDBStatementsThatMayRunOthersAreKnown(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"CALL pay()", "EXECUTE s", "EXECUTE IMMEDIATE 'x'", "SET STATEMENT max_statement_time = 1 FOR CALL pay()",
		"IF a THEN CALL pay(); END IF", "SELECT 1; CALL pay()", "call pay()", "ANALYZE SELECT 1",
		"SET `autocommit` = 1", `SET @@session."autocommit" = 1`,
		// By what sql_mode says of quotes, and where it is said.
		`SELECT '\'; COMMIT; -- '`, `SELECT "\"; COMMIT; -- "`, `SELECT "a\" '"; COMMIT -- '`, `SELECT [']; COMMIT -- ']`, `SELECT '\', ["]; COMMIT -- "]`,
		"SET sql_mode = ''", "SET @@session.sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT 1",
	} {
		assert.True(t, MariaDB.Look(query).MayEnd, "%q may", query)
	}
	for _, query := range []string{
		"SELECT 1", "(SELECT 1) UNION (SELECT 2)", "insert into t values (1)", "UPDATE t SET a = 1", "DELETE FROM t", "REPLACE INTO t VALUES (1)",
		"WITH a AS (SELECT 1) SELECT * FROM a", "SET STATEMENT max_statement_time = 1 FOR SELECT 1", "SAVEPOINT a", "RELEASE SAVEPOINT a", "ROLLBACK TO a", "SET @a = 1", "SELECT 'CALL pay()'",
		`INSERT INTO t VALUES ('it\'s', "a\"b")`, `SELECT JSON_VALUE(a, '$[0]'), '\\' FROM t`,
	} {
		assert.True(t, !MariaDB.Look(query).MayEnd, "%q cannot", query)
	}
	assert.True(t, !PostgreSQL.Look("CALL pay()").MayEnd, "PostgreSQL's procedures cannot, inside a transaction")
}

func TestWhatAStatementLeavesOnItsConnectionIsKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect *Dialect
		name    string
		leaves  []string
		not     []string
	}{
		{&SQLite, "SQLite", []string{
			"PRAGMA query_only = ON",
			"pragma busy_timeout(0)",
			"SELECT 1; PRAGMA foreign_keys = OFF",
			"ATTACH 'x' AS y",
			"DETACH y",
			"CREATE TEMP TABLE t (a)",
			"CREATE TEMPORARY VIEW v AS SELECT 1",
			"CREATE TABLE temp.t (a)",
			`CREATE TABLE "temp".t (a)`,
			"CREATE TABLE `temp` . t (a)",
			"CREATE TABLE [TEMP].t (a)",
			"CREATE TABLE 'temp'.t (a)",
		}, []string{
			"SELECT 'PRAGMA'",
			"CREATE TABLE t (a)",
			"INSERT INTO t SELECT temp FROM weather",
			"SAVEPOINT pragma",
			"SELECT * FROM pragma_table_info('t')",
		}},
		{&PostgreSQL, "PostgreSQL", []string{
			"SET search_path = a",
			"SET SESSION statement_timeout = 1",
			"SET ROLE a",
			"RESET ALL",
			"LISTEN a",
			"UNLISTEN *",
			"PREPARE q AS SELECT 1",
			"DEALLOCATE ALL",
			"DISCARD TEMP",
			"LOAD 'x'",
			"CREATE TEMP TABLE t (a int)",
			"CREATE LOCAL TEMPORARY TABLE t (a int)",
			"CREATE OR REPLACE LOCAL TEMP VIEW v AS SELECT 1",
			"CREATE TABLE pg_temp.t (a int)",
			`CREATE TABLE "pg_temp".t (a int)`,
			`CREATE TABLE /* " */ "pg_temp" . "t" (a int)`,
			`SELECT "pg_advisory_lock" (1)`,
			`SELECT pg_catalog."set_config"('a.b', 'c', false)`,
			"CREATE TEMP TABLE t (a int) ON COMMIT DELETE ROWS",
			"CREATE TEMP TABLE t (a int) ON COMMIT DROP; CREATE TEMP TABLE u (a int)",
			"SELECT 1 INTO TEMP t",
			"DECLARE c CURSOR WITH HOLD FOR SELECT 1",
			"SELECT pg_advisory_lock(1)",
			"SELECT PG_TRY_ADVISORY_LOCK_SHARED (1)",
			"SELECT set_config('a.b', 'c', false)",
			"SELECT set_config('a.b', $1, $2)",
			"SELECT set_config('a.b', 'true', false), f(true)",
			"SELECT set_config('a.b', f(true), false)",
			"SELECT set_config('a.b', 'c', NOT TRUE)",
			"SELECT set_config('a.b', 'c', false AND TRUE)",
			"SELECT set_config('a.b', 'c', $1 IS TRUE)",
			"SELECT set_config(setting_name => 'a.b', is_local => false, new_value => TRUE)",
			"SELECT set_config('a.b', set_config('c.d', 'e', false), TRUE)",
			"UPDATE pg_catalog.pg_settings SET setting = 'a' WHERE name = 'search_path'",
			`WITH a AS (UPDATE ONLY "pg_settings" AS s SET setting = 'a' RETURNING 1) SELECT * FROM a`,
			"EXPLAIN ANALYZE CREATE TEMP TABLE t AS SELECT 1",
			"EXPLAIN (ANALYZE, VERBOSE, COSTS off, TIMING off) CREATE TEMPORARY TABLE t AS SELECT 1",
			"CREATE OR REPLACE GLOBAL TEMP VIEW v AS SELECT 1",
			"SELECT 1 INTO GLOBAL TEMP t",
			"CREATE UNLOGGED TABLE pg_temp_3.t (a int)",
			"SET LOCAL search_path = 'pg_temp'",
			`SELECT U&"pg_advisory_l\006fck"(1)`,
			"SET LOCAL search_path = u&'pg\005ftemp'",
			"SELECT setseed(0.5)",
		}, []string{
			"SET LOCAL search_path = a",
			"SET TRANSACTION READ ONLY",
			"SET CONSTRAINTS ALL DEFERRED",
			"CREATE TEMP TABLE t (a int) ON COMMIT DROP",
			"create temporary table t on commit drop as select 1",
			"SELECT pg_advisory_xact_lock(1), pg_advisory_unlock(1)",
			"SELECT pg_advisory_lock FROM t",
			"SELECT set_config('a.b', $1, true)",
			"SELECT pg_catalog.set_config('a.b', f('c', false), TRUE), f(false)",
			"DECLARE c CURSOR WITHOUT HOLD FOR SELECT 1",
			"INSERT INTO t SELECT temp FROM weather",
			`INSERT INTO "temp" VALUES ('temp')`,
			"EXPLAIN ANALYZE CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 1",
			"EXPLAIN ANALYZE INSERT INTO t SELECT temp FROM weather",
			`SELECT pg_catalog."set_config"('a.b', 'c', true)`,
			"SELECT 'LISTEN', \"set_config\" FROM t -- LISTEN",
			"NOTIFY a",
		}},
		{&MariaDB, "MariaDB", []string{
			"SET SESSION sql_mode = ''",
			"SET @a = 1",
			"SET NAMES utf8mb4",
			"USE other",
			"PREPARE q FROM 'SELECT 1'",
			"EXECUTE IMMEDIATE 'SET @a = 1'",
			"HANDLER t OPEN",
			"CREATE TEMPORARY TABLE t (a INT)",
			"CREATE OR REPLACE TEMPORARY TABLE t (a INT)",
			"SELECT GET_LOCK('a', 1)",
			"SELECT `get_lock` ('a', 1)",
			"SET STATEMENT max_statement_time = 1 FOR EXECUTE s",
			"SELECT @a := 1",
			"SELECT 1 INTO @a",
			"LOAD DATA LOCAL INFILE 'x' INTO TABLE t (@a)",
		}, []string{
			"SET STATEMENT max_statement_time = 1 FOR SELECT 1",
			"SELECT @a, 'GET_LOCK('",
			"SET STATEMENT max_statement_time = 1 FOR INSERT INTO t VALUES (1)",
			"SELECT a = 1 FROM t",
			"INSERT INTO t VALUES (1)",
			"DROP TEMPORARY TABLE t",
		}},
	} {
		for _, query := range c.leaves {
			assert.True(t, c.dialect.Look(query).Leaves != "", "%s: %q leaves something", c.name, query)
		}
		for _, query := range c.not {
			assert.Equal(t, c.dialect.Look(query).Leaves, "", "%s: %q leaves nothing", c.name, query)
		}
	}
}
