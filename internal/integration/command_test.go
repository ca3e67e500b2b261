package integration

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
	"github.com/semel-dev/semel/redisstore"
	"github.com/semel-dev/semel/sqlstore"
)

// runCommand runs the semel command, which must succeed, and returns what it
// prints.
func runCommand(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	assert.NoError(t, err, "%v: %s%s", args, out, &errs)
	return string(out)
}

// commandStores are stores on servers: what --store says, and the store itself,
// whose tables the command makes first.
var commandStores = map[string]func(t *testing.T, migrate func(flag string)) (flag string, store semel.Store){
	"PostgreSQL": func(t *testing.T, migrate func(string)) (string, semel.Store) {
		t.Helper()
		url := services.SharedPostgres(t).NewDatabase(t)
		migrate(url)
		return url, openCommandStore(t, func() (*sqlstore.Handles, error) { return sqlstore.OpenPostgreSQL("pgx", url) })
	},
	"MariaDB": func(t *testing.T, migrate func(string)) (string, semel.Store) {
		t.Helper()
		dsn := services.SharedMariaDB(t).NewDatabase(t)
		flag := mariadbURL(dsn)
		migrate(flag)
		return flag, openCommandStore(t, func() (*sqlstore.Handles, error) { return sqlstore.OpenMariaDB("mysql", dsn) })
	},
	"Redis": func(t *testing.T, _ func(string)) (string, semel.Store) {
		t.Helper()
		return openCommandRedis(t, services.SharedRedis(t).NewDatabase(t)+"?prefix=command")
	},
	"Redis Cluster": func(t *testing.T, _ func(string)) (string, semel.Store) {
		t.Helper()
		return openCommandRedis(t, clusterURL(services.SharedRedisCluster(t))+"&prefix=command")
	},
}

// mariadbURL is a data source name as --store has it.
func mariadbURL(dsn string) string {
	user, rest, _ := strings.Cut(dsn, "@tcp(")
	host, database, _ := strings.Cut(rest, ")/")
	return "mysql://" + user + "@" + host + "/" + database
}

func openCommandStore(t *testing.T, open func() (*sqlstore.Handles, error)) semel.Store {
	t.Helper()
	h, err := open()
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	s, err := sqlstore.New(t.Context(), h, sqlstore.Config{})
	assert.NoError(t, err)
	return s
}

func openCommandRedis(t *testing.T, url string) (string, semel.Store) {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url, redisstore.Config{Prefix: "command", Logger: unheard})
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return url, s
}

func TestTheCommandLooksAfterTheKeysOfEveryServer(t *testing.T) {
	t.Parallel()
	program := buildDemo(t)
	for name, open := range commandStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flag, store := open(t, func(flag string) {
				assert.Equal(t, runCommand(t, program, "migrate", "up", "--store="+flag, "--dry-run"), "would apply 0001_init\n")
				assert.Equal(t, runCommand(t, program, "migrate", "up", "--store="+flag), "applied 0001_init\n")
			})
			p := beginFor("k")
			p.Scope, p.OperationID = "command \xff", semel.NewOperationID(semel.DefaultService, "command \xff", "k", 0)
			begun, err := store.Begin(t.Context(), p)
			assert.NoError(t, err)
			_, err = store.Finish(t.Context(), begun.Record.Claim(), semel.FinishParams{To: semel.StateUnknown})
			assert.NoError(t, err)

			var stuck struct{ Operation, State, Key, ScopeBase64 string }
			line := runCommand(t, program, "keys", "stuck", "--store="+flag, "--older-than=0s", "--json", "--show-keys")
			assert.NoError(t, json.Unmarshal([]byte(line), &stuck), "%s", line)
			assert.Equal(t, stuck.Operation, p.OperationID.String())
			assert.Equal(t, stuck.State+" "+stuck.Key+" "+stuck.ScopeBase64, "unknown k Y29tbWFuZCD/")
			said := runCommand(t, program, "keys", "settle", "--store="+flag, "--operation="+stuck.Operation,
				"--as=done", "--actor=ann", "--reason=the bank has it", "--yes")
			assert.Contains(t, said, "is   done, attempt 2")
			rec, err := store.Get(t.Context(), p.Scope, p.Key)
			assert.NoError(t, err)
			assert.Equal(t, rec.State, semel.StateDone)
			shown := runCommand(t, program, "keys", "show", "--store="+flag, "--operation="+stuck.Operation)
			assert.Contains(t, shown, `settled done, by ann: "the bank has it"`)
		})
	}
}

func TestWhatTheCommandPrintsMakesTheTablesOfServers(t *testing.T) {
	t.Parallel()
	program := buildDemo(t)
	for dialect, database := range map[string]func(t *testing.T) (db *sql.DB, flag string){
		"postgres": func(t *testing.T) (*sql.DB, string) {
			t.Helper()
			url := services.SharedPostgres(t).NewDatabase(t)
			db, err := sql.Open("pgx", url+"&default_query_exec_mode=simple_protocol")
			assert.NoError(t, err)
			return db, url
		},
		"mariadb": func(t *testing.T) (*sql.DB, string) {
			t.Helper()
			dsn := services.SharedMariaDB(t).NewDatabase(t)
			db, err := sql.Open("mysql", dsn+"?multiStatements=true")
			assert.NoError(t, err)
			return db, mariadbURL(dsn)
		},
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			db, flag := database(t)
			t.Cleanup(func() { assert.NoError(t, db.Close()) })
			_, err := db.ExecContext(t.Context(), runCommand(t, program, "migrate", "print", "--dialect="+dialect))
			assert.NoError(t, err)
			assert.Equal(t, runCommand(t, program, "migrate", "status", "--store="+flag), "version 1 of 1\napplied 0001_init\n")
			assert.Equal(t, runCommand(t, program, "keys", "list", "--store="+flag), "no keys\n")
			_, err = db.ExecContext(t.Context(), runCommand(t, program, "migrate", "print", "--dialect="+dialect, "--down"))
			assert.NoError(t, err)
			assert.Equal(t, runCommand(t, program, "migrate", "status", "--store="+flag), "version 0 of 1\npending 0001_init\n")
		})
	}
}
