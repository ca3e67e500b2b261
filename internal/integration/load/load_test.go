package load

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/assert"
	"github.com/semel-dev/semel/internal/integration/services"
)

// The variables that say what to play: see the package comment.
const (
	longVariable = "SEMEL_LONG"
	seedVariable = "SEMEL_LOAD_SEED"
	keysVariable = "SEMEL_LOAD_KEYS"
)

// form is how much there is of each load.
type form struct {
	long        bool
	seed        uint64
	keys        int // of each load; zero is each one's own
	connections int // of each worker, to its clients and to the server
}

// chosenForm is that of the environment.
func chosenForm(t *testing.T) form {
	t.Helper()
	f := form{seed: 1, connections: 8}
	if f.long = os.Getenv(longVariable) != ""; f.long {
		f.seed, f.connections = uint64(rand.Uint32()), 64
	}
	var err error
	if text := os.Getenv(seedVariable); text != "" {
		f.seed, err = strconv.ParseUint(text, 10, 64)
		assert.NoError(t, err, seedVariable)
	}
	if text := os.Getenv(keysVariable); text != "" {
		f.keys, err = strconv.Atoi(text)
		assert.NoError(t, err, keysVariable)
	}
	return f
}

// amount is a number in the short form and in the long one.
type amount struct{ short, long int }

func (a amount) in(f form) int {
	if f.long {
		return a.long
	}
	return a.short
}

// load is a load that a store is to carry.
type load struct {
	name       string
	technology string
	mode       string
	hold       bool
	keys       amount // none: not in this form
	restarts   amount
	freezes    amount
}

// loads are those of each server.
var loads = map[string][]load{
	"PostgreSQL": {
		{name: "joined, Hold", technology: "pgxstore", mode: "joined", hold: true, keys: amount{0, 100_000}},
		{name: "atomic", technology: "pgxstore", mode: "atomic", hold: true, keys: amount{0, 20_000}},
		{name: "joined by database/sql, Resume", technology: "PostgreSQL", mode: "joined", keys: amount{60, 20_000}},
		{name: "joined, Hold, restarted", technology: "pgxstore", mode: "joined", hold: true, keys: amount{120, 100_000}, restarts: amount{2, 10}},
		{name: "joined, Resume, restarted", technology: "pgxstore", mode: "joined", keys: amount{120, 20_000}, restarts: amount{1, 10}, freezes: amount{1, 4}},
		{name: "atomic, restarted", technology: "pgxstore", mode: "atomic", hold: true, keys: amount{60, 20_000}, restarts: amount{1, 10}},
		{name: "joined by database/sql, Hold, restarted", technology: "PostgreSQL", mode: "joined", hold: true, keys: amount{0, 20_000}, restarts: amount{0, 10}},
	},
	"MariaDB": {
		{name: "joined, Hold", technology: "MariaDB", mode: "joined", hold: true, keys: amount{0, 20_000}},
		{name: "joined, Hold, restarted", technology: "MariaDB", mode: "joined", hold: true, keys: amount{100, 20_000}, restarts: amount{1, 10}},
		{name: "joined, Resume, restarted", technology: "MariaDB", mode: "joined", keys: amount{100, 20_000}, restarts: amount{1, 10}, freezes: amount{1, 4}},
	},
	"Redis": {
		{name: "leased, Hold", technology: "Redis", mode: "leased", hold: true, keys: amount{0, 20_000}},
		{name: "leased, Hold, restarted", technology: "Redis", mode: "leased", hold: true, keys: amount{120, 20_000}, restarts: amount{2, 10}},
		{name: "leased, Resume, restarted", technology: "Redis", mode: "leased", keys: amount{120, 20_000}, restarts: amount{1, 10}, freezes: amount{1, 4}},
	},
	"SQLite": {
		{name: "joined, Hold", technology: "SQLite", mode: "joined", hold: true, keys: amount{80, 20_000}},
	},
}

// instance is a server, and how an empty database is made in it.
type instance struct {
	server server
	empty  func(t *testing.T) (dsn string)
}

var instances = map[string]func(t *testing.T) instance{
	"PostgreSQL": func(t *testing.T) instance {
		p := services.NewPostgres(t)
		return instance{p, func(t *testing.T) string { return p.NewDatabase(t) }}
	},
	"MariaDB": func(t *testing.T) instance {
		m := services.NewMariaDB(t)
		return instance{m, func(t *testing.T) string { return m.NewDatabase(t) }}
	},
	"Redis": func(t *testing.T) instance {
		r := services.NewRedis(t)
		return instance{r, func(t *testing.T) string { return r.NewDatabase(t) }}
	},
	"SQLite": func(*testing.T) instance {
		return instance{nil, func(t *testing.T) string { return filepath.Join(t.TempDir(), "load.db") }}
	},
}

func TestLoad(t *testing.T) {
	t.Parallel()
	f := chosenForm(t)
	var turns sync.Mutex
	for name, all := range loads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if f.long { // two at a time would say little of each
				turns.Lock()
				defer turns.Unlock()
			}
			on := instances[name](t)
			for _, l := range all {
				if l.keys.in(f) > 0 {
					t.Run(l.name, func(t *testing.T) { l.carry(t, f, on, name) })
				}
			}
		})
	}
}

const (
	// shortLease is the lease where something is restarted: what is left
	// running waits for its end.
	shortLease = time.Second
	// work is how long a payment may take there, so that there are some under
	// way whenever something strikes.
	work = 100 * time.Millisecond
)

// carry plays a load and judges it.
func (l load) carry(t *testing.T, f form, on instance, name string) {
	t.Helper()
	keys := l.keys.in(f)
	if f.keys > 0 {
		keys = f.keys
	}
	p := newPlan(f.seed, keys, l.restarts.in(f), l.freezes.in(f))
	what := name + ", " + l.name
	r := &run{plan: p, server: on.server, say: func(far string) { say(t, what, far) }, setting: setting{
		Technology: l.technology, DSN: on.empty(t), Connections: f.connections, Mode: l.mode, Hold: l.hold, Lease: semel.DefaultLease,
	}}
	if len(p.strikes) > 0 {
		r.Lease, r.Work = shortLease, work
	}
	e, err := r.play(t.Context(), t.TempDir())
	assert.NoError(t, err, "seed %d could not be played", f.seed)
	say(t, what, e.String())
	wrong := e.judge()
	for i, what := range wrong {
		if i == enoughStray {
			t.Errorf("and %d more", len(wrong)-i)
			break
		}
		t.Errorf("seed %d: %s", f.seed, what)
	}
	if missing := e.missing(); len(missing) > 0 {
		t.Errorf("seed %d: the load was none: there were no %s", f.seed, strings.Join(missing, ", no "))
	}
}

// say prints a line that internal/testreport shows at once.
func say(t *testing.T, what, line string) {
	t.Helper()
	fmt.Fprintf(t.Output(), "report: load: %s: %s\n", what, line)
}
