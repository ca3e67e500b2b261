package integration

import (
	"database/sql"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

// pieces are what statements that hide a COMMIT are made of.
var pieces = []string{
	"COMMIT", "end", "ROLLBACK", "ROLLBACK TO probe", "BEGIN", "TRANSACTION", "SELECT 1", "SELECT ", "1", "EXPLAIN ",
	";", ";", " ", "\n", "\r", "\t", "\f", "\v", "\x00", "\ufeff", "\ufeff", "\xef", "\u00a0", "\u2028", "é",
	"'", "\"", "`", "[", "]", "--", "/*", "*/", "/", "*", "-", "(", ")", ",",
	"$a", "$a(", "$a(')", "@a([)", "$a(--)", ":a(/*)", "$a(;)", "::", "?1", "x'", "0x", "1e", "a", "_", "$", "@", "#", ":", ".",
}

// arguments are those of the parameters among the pieces: the driver runs
// nothing that lacks one.
var arguments = []any{
	1, sql.Named("a", 1), sql.Named("a(')", 1), sql.Named("a([)", 1), sql.Named("a(--)", 1), sql.Named("a(/*)", 1), sql.Named("a(;)", 1),
}

// statementJudge asks SQLite itself what a text does.
type statementJudge struct {
	db *sql.DB
	tx *sqlstore.JoinedTx
}

func newStatementJudge(t testing.TB) *statementJudge {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "judge.db"))
	assert.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })

	s := newSQLite(t)
	res, err := s.Begin(t.Context(), beginFor("k"))
	assert.NoError(t, err)
	j := s.Join(res.Record.Claim())
	tx, err := sqlstore.Tx(j.Context(t.Context()))
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, j.Rollback()) })
	return &statementJudge{db: db, tx: tx}
}

// ends reports whether the text ends the transaction that it is run in.
func (j *statementJudge) ends(t testing.TB, text string) bool {
	t.Helper()
	for _, statement := range []string{"BEGIN", "SAVEPOINT probe"} {
		_, err := j.db.Exec(statement)
		assert.NoError(t, err)
	}
	j.db.Exec(text, arguments...) //nolint:errcheck // most are no statements.
	_, err := j.db.Exec("RELEASE probe")
	j.db.Exec("ROLLBACK") //nolint:errcheck // it may have ended.
	return err != nil
}

// refused reports whether a joined transaction refuses the text. It only
// prepares it.
func (j *statementJudge) refused(t testing.TB, text string) bool {
	t.Helper()
	stmt, err := j.tx.PrepareContext(t.Context(), text)
	if err == nil {
		defer stmt.Close()
	}
	return errors.Is(err, semel.ErrTxMisuse)
}

func (j *statementJudge) check(t testing.TB, text string) (ends bool) {
	t.Helper()
	ends = j.ends(t, text)
	assert.True(t, !ends || j.refused(t, text), "%q ends the transaction, and is refused", text)
	return ends
}

func TestJoinedTxRefusesWhateverSQLiteTakesForTheEnd(t *testing.T) {
	t.Parallel()
	assert.LeaveToPlainRun(t, "many texts, read one after the other")
	j := newStatementJudge(t)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same texts each time.
	ending := 0
	for range 50_000 {
		text := randomPieces(random, 5)
		if random.IntN(2) == 0 {
			text = "SELECT " + text + ";" + randomPieces(random, 2) + "COMMIT" + randomPieces(random, 3)
		}
		if j.check(t, text) {
			ending++
		}
	}
	assert.True(t, ending > 300, "texts that end the transaction: got %d, want some hundreds", ending)
}

// randomPieces returns at most that many of the pieces.
func randomPieces(random *rand.Rand, most int) string {
	var text strings.Builder
	for range random.IntN(most + 1) {
		text.WriteString(pieces[random.IntN(len(pieces))])
	}
	return text.String()
}

func FuzzJoinedTxRefusesWhateverSQLiteTakesForTheEnd(f *testing.F) {
	for _, seed := range []string{"COMMIT", "\ufeffEND", "SELECT $a('); COMMIT; --')", "SELECT 1; ROLLBACK", "/**/COMMIT", "\x00COMMIT"} {
		f.Add(seed)
	}
	j := newStatementJudge(f)
	f.Fuzz(func(t *testing.T, text string) { j.check(t, text) })
}
