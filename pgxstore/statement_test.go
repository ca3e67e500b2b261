package pgxstore

import (
	"testing"

	"github.com/semel-dev/semel/internal/assert"
)

func TestStatementsThatWouldEndTheTransactionAreRefused(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"COMMIT",
		"commit;",
		"END",
		"ABORT",
		"Rollback Work",
		"ROLLBACK",
		"BEGIN ISOLATION LEVEL SERIALIZABLE",
		"START TRANSACTION",
		"PREPARE TRANSACTION 'x'",
		" \n\t;; commit",
		"-- a comment\nCOMMIT",
		"/* a /* nested */ comment */ COMMIT",
		"/**/COMMIT/**/",
		"/*/ still one */COMMIT",
		"SELECT 1; COMMIT",
		"SELECT ';'; COMMIT",
		"SELECT 'it''s'; COMMIT",
		`SELECT 'C:\'; COMMIT`,
		`SELECT E'it\'s'; COMMIT`,
		`SELECT "a;b" FROM t; COMMIT`,
		"SELECT $$ ; $$; COMMIT",
		"SELECT $a$ $$ ' $a$; COMMIT",
		"SELECT $1; COMMIT",
		"SELECT a$1; COMMIT --$1",
		"SELECT 1 -- ;\n; COMMIT",
		"SELECT 1 -- ;\r; COMMIT",
		"SELECT 1; ROLLBACK -- TO\n; SELECT 2",
		"\ufeffCOMMIT",
	} {
		err := checkStatement(query)
		assert.ErrorIs(t, err, ErrTxMisuse, query)
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
		`INSERT INTO t VALUES (E'it\'s; COMMIT')`,
		"INSERT INTO t VALUES ('unfinished; COMMIT",
		`SELECT "; COMMIT"`,
		"DO $$ BEGIN NULL; END $$",
		"DO $body$ BEGIN NULL; END $body$",
		"SELECT 1 -- ; COMMIT",
		"SELECT 1 /* ; COMMIT */",
		"SELECT 1 /* /* */ ; COMMIT */",
		"SAVEPOINT a",
		"RELEASE a",
		"ROLLBACK TO a",
		"rollback to savepoint a",
		"PREPARE a AS SELECT 1",
		"SELECT begin FROM commit",
		"committed",
	} {
		assert.NoError(t, checkStatement(query), query)
	}
}

func FuzzCheckStatement(f *testing.F) {
	f.Add("SELECT $a$ ' /* $a$; COMMIT")
	f.Fuzz(func(t *testing.T, query string) {
		before := checkStatement(query)
		if after := checkStatement("SELECT 1; " + query); (before == nil) != (after == nil) {
			t.Errorf("got %v after another statement, want %v as alone", after, before)
		}
	})
}
