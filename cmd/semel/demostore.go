package main

import (
	"context"
	"log/slog"

	"github.com/semel-dev/semel/cmd/examples/payments/demo"
	"github.com/semel-dev/semel/cmd/examples/payments/service"
	"github.com/semel-dev/semel/redisstore"
	"github.com/semel-dev/semel/sqlstore"
)

// demoStoreVariable is the environment variable that says what --store of the
// demo does not. It is another one than that of the other commands: they look
// after a store that is there, and the demo makes tables.
const demoStoreVariable = "SEMEL_DEMO_STORE"

// serviceDialects are the dialects of the demo's payment service.
var serviceDialects = map[string]service.Dialect{
	"sqlite":   service.SQLite,
	"postgres": service.PostgreSQL,
	"mariadb":  service.MariaDB,
}

// findDemoStore returns the store that a URL names, or none for no URL.
func findDemoStore(url string) (*demo.Store, error) {
	if url == "" {
		return nil, nil //nolint:nilnil // none is an answer.
	}
	at, err := locate(url)
	if err != nil {
		return nil, err
	}
	env := []string{demoStoreVariable + "=" + url}
	if at.isRedis() {
		where, err := at.redisServer()
		if err != nil {
			return nil, err
		}
		return &demo.Store{Name: string(service.Redis), Where: where, KeysOnly: true, Env: env, Open: at.openBesideRedis}, nil
	}
	d, err := at.findDatabase()
	if err != nil {
		return nil, err
	}
	dialect := serviceDialects[d.dialect]
	return &demo.Store{
		Name: string(dialect.System), Where: d.where, Env: env,
		Open: func(context.Context, string, *slog.Logger) (service.Place, func(), error) {
			h, err := d.open()
			if err != nil {
				return service.Place{}, nil, err
			}
			return service.Place{Business: h, Dialect: dialect}, func() { h.Close() }, nil //nolint:errcheck // its user is done.
		},
	}, nil
}

// openBesideRedis opens the place of a payment service whose keys are in Redis,
// and its payments in a file. Redis may lose keys in a failover: the service
// resumes, and the bank knows the operation id.
func (at *location) openBesideRedis(ctx context.Context, file string, log *slog.Logger) (service.Place, func(), error) {
	keys, err := redisstore.Open(ctx, at.url, redisstore.Config{Prefix: at.redisPrefix(), Logger: log})
	if err != nil {
		return service.Place{}, nil, err
	}
	h, err := sqlstore.OpenSQLite("sqlite", file)
	if err != nil {
		keys.Close() //nolint:errcheck // the first error is the one that matters.
		return service.Place{}, nil, err
	}
	closing := func() {
		h.Close()    //nolint:errcheck // its user is done.
		keys.Close() //nolint:errcheck // its user is done.
	}
	return service.Place{Business: h, Keys: keys, KeysSystem: service.Redis}, closing, nil
}
