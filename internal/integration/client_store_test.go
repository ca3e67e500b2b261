package integration

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/internal/intenttest"
	"github.com/semel-dev/semel/semelclient"
)

func TestClientStoresInSQLKeepTheContract(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		dialect semelclient.SQLDialect
		driver  string
		dsn     func(t *testing.T) string
	}{
		{semelclient.SQLite, "sqlite", func(t *testing.T) string {
			t.Helper()
			return "file:" + filepath.Join(t.TempDir(), "intents.db") + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
		}},
		{semelclient.PostgreSQL, "pgx", func(t *testing.T) string {
			t.Helper()
			return services.SharedPostgres(t).NewDatabase(t)
		}},
		{semelclient.MariaDB, "mysql", func(t *testing.T) string {
			t.Helper()
			return services.SharedMariaDB(t).NewDatabase(t)
		}},
	} {
		t.Run(string(tt.dialect), func(t *testing.T) {
			t.Parallel()
			dsn := tt.dsn(t)
			open := func(t *testing.T) semelclient.IntentStore {
				t.Helper()
				db, err := sql.Open(tt.driver, dsn)
				assert.NoError(t, err)
				db.SetMaxOpenConns(4)
				t.Cleanup(func() { db.Close() })
				store, err := semelclient.NewSQLStore(db, tt.dialect)
				assert.NoError(t, err)
				assert.NoError(t, store.Migrate(context.Background()))
				return store
			}
			open(t) // the table is there
			intenttest.Run(t, open)
			t.Run("a hold ends by the database's clock", func(t *testing.T) {
				t.Parallel()
				a, b := open(t), open(t)
				in := semelclient.Intent{Key: "ends", Method: "POST", URL: "http://x.test/"}
				old, err := a.Add(t.Context(), in, -time.Second)
				assert.NoError(t, err)
				entry, err := b.Hold(t.Context(), in.Key, time.Hour)
				assert.NoError(t, err)
				assert.ErrorIs(t, a.Settle(t.Context(), old, semelclient.Settlement{}), semelclient.ErrIntentHeld)
				assert.NoError(t, a.Release(t.Context(), old))
				_, err = a.Hold(t.Context(), in.Key, time.Hour)
				assert.ErrorIs(t, err, semelclient.ErrIntentHeld)
				assert.NoError(t, b.Settle(t.Context(), entry.Hold, semelclient.Settlement{}))
			})
		})
	}
}

func TestAnAddToAFullSQLiteLeavesWhatIsThere(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "intents.db")+"?_pragma=max_page_count(20)")
	assert.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	store, err := semelclient.NewSQLStore(db, semelclient.SQLite)
	assert.NoError(t, err)
	assert.NoError(t, store.Migrate(t.Context()))
	in := semelclient.Intent{Key: "there", Method: "POST", URL: "http://x.test/"}
	h, err := store.Add(t.Context(), in, time.Hour)
	assert.NoError(t, err)
	for _, key := range []string{"there", "new"} {
		_, err = store.Add(t.Context(), semelclient.Intent{Key: key, Method: "POST", URL: "http://x.test/", Body: make([]byte, 1<<20)}, time.Hour)
		assert.True(t, err != nil, "%s is stored", key)
	}
	assert.Contains(t, err.Error(), "full")
	_, err = store.Hold(t.Context(), "new", time.Hour)
	assert.ErrorIs(t, err, semelclient.ErrIntentMissing)
	assert.NoError(t, store.Settle(t.Context(), h, semelclient.Settlement{}))
}
