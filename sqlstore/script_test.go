package sqlstore

import (
	"strings"
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

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
		err := sqliteSyntax.check(query)
		assert.True(t, err != nil, "%q is refused", query)
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
		assert.NoError(t, sqliteSyntax.check(query), "%q", query)
	}
}

// FuzzCheckStatement holds the two ends: a COMMIT after whatever ends is
// refused, and one inside a quoted text is not.
func FuzzCheckStatement(f *testing.F) {
	for _, seed := range []string{"SELECT 1", "a''b", "--", "/*", "[x]", "`", "\"", ";", "é\x00\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := "SELECT '" + strings.ReplaceAll(s, "'", "''") + "'"
		assert.NoError(t, sqliteSyntax.check(quoted), "%q", quoted)
		refused := quoted + "; COMMIT"
		assert.True(t, sqliteSyntax.check(refused) != nil, "%q is refused", refused)
		sqliteSyntax.check(s) //nolint:errcheck // it must end, whatever it says.
	})
}

func TestDialectsRefuseWhatEndsATransactionThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		syntax  *syntax
		name    string
		refused []string
		not     []string
	}{
		{&postgresSyntax, "PostgreSQL", []string{
			"ABORT",
			"PREPARE TRANSACTION 'x'",
			"COMMIT AND CHAIN",
			"-- a\rCOMMIT",
			"/* a /* nested */ comment */ COMMIT",
			"SELECT $$ ; $$; COMMIT",
			"SELECT $a$ $b$ ; $a$; COMMIT",
			`SELECT E'it\'s'; COMMIT`,
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
		{&mariadbSyntax, "MariaDB", []string{
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
			`SELECT '\'; COMMIT'`,
			`SELECT "\"; COMMIT"`,
			"SELECT 1 # ; COMMIT",
			"SELECT 1 -- ; COMMIT",
			"SELECT ':=', @a := 1",
			"CALL pay()",
			"INSERT INTO t VALUES ('autocommit')",
		}},
	} {
		for _, query := range c.refused {
			assert.True(t, c.syntax.check(query) != nil, "%s: %q is refused", c.name, query)
		}
		for _, query := range c.not {
			assert.NoError(t, c.syntax.check(query), "%s: %q", c.name, query)
		}
	}
}

func TestMariaDBStatementsThatMayRunOthersAreKnown(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"CALL pay()", "EXECUTE s", "EXECUTE IMMEDIATE 'x'", "SET STATEMENT max_statement_time = 1 FOR CALL pay()",
		"IF a THEN CALL pay(); END IF", "SELECT 1; CALL pay()", "call pay()", "ANALYZE SELECT 1",
	} {
		assert.True(t, mariadbSyntax.mayEnd(query), "%q may", query)
	}
	for _, query := range []string{
		"SELECT 1", "(SELECT 1) UNION (SELECT 2)", "insert into t values (1)", "UPDATE t SET a = 1", "DELETE FROM t", "REPLACE INTO t VALUES (1)",
		"WITH a AS (SELECT 1) SELECT * FROM a", "SAVEPOINT a", "RELEASE SAVEPOINT a", "ROLLBACK TO a", "SET @a = 1", "SELECT 'CALL pay()'",
	} {
		assert.True(t, !mariadbSyntax.mayEnd(query), "%q cannot", query)
	}
	assert.True(t, !postgresSyntax.mayEnd("CALL pay()"), "PostgreSQL's procedures cannot, inside a transaction")
}
