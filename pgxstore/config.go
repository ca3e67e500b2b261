package pgxstore

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/internal/testhook"
)

// The defaults of Config.
const (
	DefaultMaxConns   = 8
	DefaultMaxTxConns = 16
)

// Config holds the optional settings of a Store. Zero means the default.
type Config struct {
	// MaxConns is the most connections for claims, heartbeats, finishes and
	// reads. Default DefaultMaxConns.
	MaxConns int32
	// MaxTxConns is the most business transactions at one time, of joined and
	// atomic mode. They have connections of their own: a handler that waits
	// for one holds up no heartbeat. Default DefaultMaxTxConns.
	MaxTxConns int32
	// TransactionPooler says that the URL leads to a pooler that gives a
	// server connection to a transaction and not to a session, such as
	// PgBouncer with pool_mode=transaction. Limits are then set in each
	// transaction (SET LOCAL) instead of with the connection, and statements
	// go by the simple protocol, which every PgBouncer knows, unless the URL
	// says default_query_exec_mode=exec.
	TransactionPooler bool
	// Class is what the server keeps of what it has acknowledged. Default
	// semel.Durable; semel.DurableUnlessFailover where a replica that has not
	// confirmed a write may take over.
	Class semel.StoreClass
	// Hooks are for the tests of this module: they move the store's clock.
	// Their type is internal, so that nobody else can set them.
	Hooks testhook.Hooks
}

const (
	// statementLimit is after how long the server gives a statement of the
	// store's own up. It is shorter than semel.DefaultStoreTimeout, so that
	// the database gives up before its caller does (R15).
	statementLimit = 3 * time.Second
	// lockLimit is how long such a statement waits for a row that another
	// transaction is writing.
	lockLimit = time.Second
	// idleLimit ends a transaction of the store's own whose client is gone.
	idleLimit = 10 * time.Second
	// connectLimit is how long a connection may take to come up.
	connectLimit = 4 * time.Second
)

// hostLossParams let the server notice a client whose host or network is gone
// in half a minute instead of hours, so that its transaction ends (R17). They
// do nothing on a Unix socket.
var hostLossParams = map[string]string{
	"tcp_user_timeout":        "30000", // ms without an acknowledgement
	"tcp_keepalives_idle":     "15",    // s
	"tcp_keepalives_interval": "5",     // s
	"tcp_keepalives_count":    "3",
}

// ownParams are the settings of the connections for the store's own
// statements. These are short, and all find their rows by an index: a plan
// that was cached while the table was small must not read all of it later.
func ownParams() map[string]string {
	return map[string]string{
		"statement_timeout":                   milliseconds(statementLimit),
		"lock_timeout":                        milliseconds(lockLimit),
		"idle_in_transaction_session_timeout": milliseconds(idleLimit),
		"default_transaction_isolation":       "read committed",
		"enable_seqscan":                      "off",
		"jit":                                 "off",
	}
}

// localSettings say the same for one transaction, behind a pooler.
var localSettings = []string{
	"SET LOCAL statement_timeout = " + milliseconds(statementLimit),
	"SET LOCAL lock_timeout = " + milliseconds(lockLimit),
	"SET LOCAL idle_in_transaction_session_timeout = " + milliseconds(idleLimit),
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// complete fills in the defaults and checks every field once.
func (c *Config) complete() error {
	for _, n := range []struct {
		name  string
		field *int32
		def   int32
	}{
		{"MaxConns", &c.MaxConns, DefaultMaxConns},
		{"MaxTxConns", &c.MaxTxConns, DefaultMaxTxConns},
	} {
		if *n.field < 0 {
			return configError("%s is %d; it must not be negative", n.name, *n.field)
		}
		if *n.field == 0 {
			*n.field = n.def
		}
	}
	switch c.Class {
	case "":
		c.Class = semel.Durable
	case semel.Durable, semel.DurableUnlessFailover, semel.BestEffort:
	default:
		return configError("Class is %q; it must be one of semel's classes", c.Class)
	}
	return nil
}

// pools opens the pool of the store's own statements and that of business
// transactions. Neither connects yet.
func (c *Config) pools(ctx context.Context, base *pgxpool.Config) (own, tx *pgxpool.Pool, err error) {
	own, err = c.pool(ctx, base, c.MaxConns, ownParams(), hostLossParams)
	if err != nil {
		return nil, nil, err
	}
	tx, err = c.pool(ctx, base, c.MaxTxConns, hostLossParams)
	if err != nil {
		own.Close()
		return nil, nil, err
	}
	return own, tx, nil
}

func (c *Config) pool(ctx context.Context, base *pgxpool.Config, conns int32, params ...map[string]string) (*pgxpool.Pool, error) {
	p := base.Copy()
	p.MaxConns = conns
	p.MinConns, p.MinIdleConns = min(p.MinConns, conns), min(p.MinIdleConns, conns)
	cc := p.ConnConfig
	if cc.ConnectTimeout == 0 || cc.ConnectTimeout > connectLimit {
		cc.ConnectTimeout = connectLimit
	}
	if _, named := cc.RuntimeParams["application_name"]; !named {
		cc.RuntimeParams["application_name"] = "semel"
	}
	if c.TransactionPooler {
		if cc.DefaultQueryExecMode != pgx.QueryExecModeExec {
			cc.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		}
	} else {
		for _, of := range params {
			maps.Copy(cc.RuntimeParams, of)
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, p)
	if err != nil {
		return nil, semel.NewError(semel.CodeConfig, err, "pgxstore: the pool's configuration is refused")
	}
	return pool, nil
}
