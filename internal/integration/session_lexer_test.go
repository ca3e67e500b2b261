package integration

import (
	"context"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/sqlstore"
)

// A setting can change where a quoted text ends, and so what stands behind it.

func TestPostgresCommitThatASettingWouldShowIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"PostgreSQL", "pgx joined", "pgx atomic"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessionWays[name].open(t)
			runs := 0
			work := func(ctx context.Context) semel.Completion {
				runs++
				assert.NoError(t, s.leave(ctx, "SET LOCAL standard_conforming_strings = off"))
				err := s.leave(ctx, `SELECT '\''; COMMIT; --'`)
				assert.ErrorIs(t, err, semel.ErrTxMisuse)
				return created
			}
			for _, want := range []semel.Outcome{semel.OutcomeExecuted, semel.OutcomeReplayed} {
				res, err := s.run(t, "k", semel.Config{}, work)
				assert.NoError(t, err)
				assert.Equal(t, res.Outcome, want)
			}
			assert.Equal(t, runs, 1, "runs")
		})
	}
}

func TestMariaDBCommitThatASettingShowsIsNoticed(t *testing.T) {
	t.Parallel()
	for _, texts := range [][]string{
		{"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", `SELECT '\'; COMMIT; -- '`},
		{"SET sql_mode = 'ANSI_QUOTES'", `SELECT 1 AS "\"; COMMIT; -- "`},
		{"SET sql_mode = 'MSSQL'", `SELECT 1 AS [']; COMMIT; -- ']`},
		{`SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT '\'; COMMIT; -- '`},
		{`SELECT '\''; SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT '\'; COMMIT; -- '`},
	} {
		t.Run(strings.Join(texts, "; "), func(t *testing.T) {
			t.Parallel()
			there := newSQL(t, "MariaDB")
			h, err := sqlstore.OpenMariaDB(there.server.driver, there.dsn+"?multiStatements=true")
			assert.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, h.Close()) })
			s := overSQL(t, h)
			res, err := s.run(t, "k", semel.Config{}, func(ctx context.Context) semel.Completion {
				assert.NoError(t, s.leave(ctx, strings.Replace(there.server.insert, "?", "'paid'", 1)))
				for _, text := range texts {
					assert.NoError(t, s.leave(ctx, text), text)
				}
				return created
			})
			assert.Equal(t, there.payments(t), 1, "rows that the handler has committed")
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable)
			assert.Equal(t, res.Outcome, semel.OutcomeUnknown)
		})
	}
}
