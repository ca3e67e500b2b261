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
