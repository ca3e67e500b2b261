package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// The most connections to a server. Over sixteen at work at once gain nothing
// on a small one, and four processes stay below PostgreSQL's first hundred.
const (
	ownConnections      = 8
	businessConnections = 16
)

// tryTimeout bounds the wait for a server's first connections: a server that
// has just been started, with all its clients, takes its time.
const tryTimeout = 30 * time.Second

// setUp is how the connections of one pool differ from the driver's.
type setUp struct {
	// session is what each connection runs first.
	session []string
	// wrap puts something around a connection. It may be nil.
	wrap func(driver.Conn) driver.Conn
}

// openServer opens the two pools of a server's database and tries both, the
// business's first: try may refuse the server before any setting is made.
func openServer(driverName, dsn string, d *dialect, own, business setUp, try func(ctx context.Context, business *sql.DB) error) (*Handles, error) {
	base, err := baseConnector(driverName, dsn, d.example)
	if err != nil {
		return nil, err
	}
	h := &Handles{
		Write:   sql.OpenDB(&serverConnector{Connector: base, setUp: business}),
		dialect: d,
		own:     sql.OpenDB(&serverConnector{Connector: base, setUp: own}),

		ownTurns: make(turns, ownConnections),
	}
	h.Read, h.ownRead = h.Write, h.own
	limit(h.Write, businessConnections)
	limit(h.own, ownConnections)
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	err = try(ctx, h.Write)
	if err == nil {
		err = h.own.PingContext(ctx)
	}
	if err == nil {
		return h, nil
	}
	h.Close() //nolint:errcheck // the first error is the one that matters.
	if errors.Is(err, semel.ErrConfig) {
		return nil, err
	}
	return nil, unavailable(fmt.Errorf("open the database: %w", err))
}

// ping asks whether the server can be reached.
func ping(ctx context.Context, business *sql.DB) error { return business.PingContext(ctx) }

// limit keeps what was opened open: a new connection costs more than a claim.
func limit(db *sql.DB, most int) {
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
}

// class is the one that was said, unless the server's commits are not durable.
func (h *Handles) class(ctx context.Context, said semel.StoreClass) (semel.StoreClass, error) {
	switch said {
	case "":
		said = semel.Durable
	case semel.Durable, semel.DurableUnlessFailover, semel.BestEffort:
	default:
		return "", configError("Class is %q; it must be one of semel's classes", said)
	}
	if h.dialect.durable == "" {
		return said, nil
	}
	var durable bool
	if err := h.ownRead.QueryRowContext(ctx, h.dialect.durable).Scan(&durable); err != nil {
		return "", unavailable(fmt.Errorf("ask whether commits are durable: %w", err))
	}
	if !durable {
		return semel.BestEffort, nil
	}
	return said, nil
}

// baseConnector returns the driver's own connector for dsn.
func baseConnector(driverName, dsn, example string) (driver.Connector, error) {
	drv, err := registered(driverName, example)
	if err != nil {
		return nil, err
	}
	d, ok := drv.(driver.DriverContext)
	if !ok {
		return &nameConnector{driver: drv, dsn: dsn}, nil
	}
	c, err := d.OpenConnector(dsn)
	if err != nil {
		return nil, semel.NewError(semel.CodeConfig, err, "sqlstore: the data source name cannot be used")
	}
	return c, nil
}

// nameConnector is the connector of a driver that has none.
type nameConnector struct {
	driver driver.Driver
	dsn    string
}

var _ driver.Connector = (*nameConnector)(nil)

// Connect opens a connection.
func (c *nameConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

// Driver returns the driver that was registered.
func (c *nameConnector) Driver() driver.Driver { return c.driver }

// serverConnector opens the connections of one pool.
type serverConnector struct {
	driver.Connector
	setUp
}

var _ driver.Connector = (*serverConnector)(nil)

// Connect opens a connection and sets it up.
func (c *serverConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, statement := range c.session {
		if _, err := run(ctx, conn, statement); err != nil {
			conn.Close() //nolint:errcheck // the first error is the one that matters.
			return nil, fmt.Errorf("%s: %w", statement, err)
		}
	}
	if c.wrap != nil {
		return c.wrap(conn), nil
	}
	return conn, nil
}

// watchedKey marks the context of a business transaction of joined mode.
type watchedKey struct{}
