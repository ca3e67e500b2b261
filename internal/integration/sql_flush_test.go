package integration

import (
	"context"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/sqlstore"
)

// TestMariaDBShowsNoReplyThatIsNotOnDisk: others see a commit there before it
// is, and a crash would take back what they were told.
func TestMariaDBShowsNoReplyThatIsNotOnDisk(t *testing.T) {
	t.Parallel()
	server := services.NewMariaDB(t)
	h, err := sqlstore.OpenMariaDB("mysql", server.NewDatabase(t))
	assert.NoError(t, err)
	defer h.Close()
	assert.NoError(t, sqlstore.Migrate(t.Context(), h))
	s, err := sqlstore.New(t.Context(), h, sqlstore.Config{})
	assert.NoError(t, err)
	set := func(flush string) {
		t.Helper()
		_, err := h.Write.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = " + flush)
		assert.NoError(t, err)
	}
	lsn := func(which string) (n int64) {
		t.Helper()
		assert.NoError(t, h.Write.QueryRow("SELECT variable_value FROM information_schema.global_status WHERE variable_name = ?", "INNODB_LSN_"+which).Scan(&n))
		return n
	}
	// Every commit is on its way to the disk for as long as the test likes.
	_, err = h.Write.Exec("SET GLOBAL innodb_flush_log_at_timeout = 2700")
	assert.NoError(t, err)
	p := beginFor("k")
	claim := claimed(t, s, "k")
	set("0")
	_, err = s.Finish(t.Context(), claim, doneWith("made"))
	assert.NoError(t, err)
	ended := lsn("CURRENT")

	reads := map[string]func(ctx context.Context) error{
		"Begin": func(ctx context.Context) error {
			res, err := s.Begin(ctx, p)
			assert.True(t, err != nil || res.Outcome == semel.BeginReplay, "Begin is answered %v", res.Outcome)
			return err
		},
		"Get": func(ctx context.Context) error { _, err := s.Get(ctx, p.Scope, p.Key); return err },
		"Finish, sent again": func(ctx context.Context) error {
			_, err := s.Finish(ctx, claim, doneWith("made"))
			return err
		},
	}
	for name, read := range reads {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err := read(ctx)
		cancel()
		if lsn("FLUSHED") < ended {
			assert.ErrorIs(t, err, semel.ErrStoreUnavailable, "%s while the end is not on disk", name)
		}
	}
	set("1")
	claimed(t, s, "another") // whose commit flushes all before it
	// What the server itself logs from now on is no commit's, and has to come to
	// the disk too.
	_, err = h.Write.Exec("SET GLOBAL innodb_flush_log_at_timeout = 1")
	assert.NoError(t, err)
	for name, read := range reads {
		assert.NoError(t, read(t.Context()), name)
	}
	assert.True(t, lsn("FLUSHED") >= ended, "the end is on disk")
}
