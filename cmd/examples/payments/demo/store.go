package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/cmd/examples/payments/service"
	"github.com/semel-dev/semel/sqlstore"
)

// Store is where the payment service keeps what it writes, if that is no file
// of the demo's own. Others may use it as well, other demos among them: a demo
// has a name of its own there, which its data directory keeps.
type Store struct {
	// Name is what people call it, such as "PostgreSQL".
	Name string
	// Where says in which database on which server, without a password.
	Where string
	// KeysOnly is true of a store of keys alone: payments and orders stay in
	// the demo's own file.
	KeysOnly bool
	// Open opens it.
	Open OpenFunc
	// Env tells a child process in its environment which store it is: see
	// RunService.
	Env []string
}

// OpenFunc opens the place of a payment service. The file is the demo's own, a
// SQLite database, for those that need it. Closing gives the place back.
type OpenFunc func(ctx context.Context, file string, log *slog.Logger) (place service.Place, closing func(), err error)

const (
	// serviceFile is the payment service's own database.
	serviceFile = "service.db"
	// identityFile says which demo a data directory belongs to, if its payment
	// service keeps something elsewhere.
	identityFile = "demo.json"
)

// openFile is the place of a demo without a store: one file has it all.
func openFile(_ context.Context, file string, _ *slog.Logger) (service.Place, func(), error) {
	h, err := sqlstore.OpenSQLite(driver, file)
	if err != nil {
		return service.Place{}, nil, err
	}
	return service.Place{Business: h}, func() { h.Close() }, nil //nolint:errcheck // the process ends.
}

// identity is the demo that a data directory belongs to.
type identity struct {
	Demo  string `json:"demo"`  // its name in the store
	Store string `json:"store"` // what kind of store that is
}

// moveIn tries the store, makes its tables and finds out what the demo is called
// there. The bank's charges and the order book are in the data directory, so
// that payments which are elsewhere than they were would not add up with them.
func (d *Demo) moveIn(ctx context.Context) error {
	known, err := d.readIdentity()
	if err != nil {
		return err
	}
	if err := d.checkIdentity(known); err != nil {
		return err
	}
	if d.cfg.Store == nil {
		return nil
	}
	place, closing, err := d.cfg.Store.Open(ctx, filepath.Join(d.data, serviceFile), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer closing()
	if err := place.Prepare(ctx); err != nil {
		return err
	}
	if known.Demo == "" {
		d.name = payments.Short(uuid.NewString())
		if err := place.Register(ctx, d.name); err != nil {
			return err
		}
		return d.writeIdentity(identity{d.name, d.cfg.Store.Name})
	}
	d.name = known.Demo
	here, err := place.Knows(ctx, d.name)
	if err == nil && !here {
		err = fmt.Errorf("there is nothing of demo %s, whose bank is in %s: is it another database? A new demo needs an empty directory", d.name, d.data)
	}
	return err
}

// checkIdentity refuses to mix the data of one store with those of another.
func (d *Demo) checkIdentity(known identity) error {
	was, is := known.Store, "SQLite files"
	if d.cfg.Store != nil {
		is = d.cfg.Store.Name
	}
	if was == "" {
		_, err := os.Stat(filepath.Join(d.data, serviceFile))
		if err != nil || d.cfg.Store == nil {
			return nil //nolint:nilerr // there is no such file, or whoever opens it says what is wrong with it.
		}
		was = "SQLite files"
	}
	if was == is {
		return nil
	}
	return fmt.Errorf("the demo in %s keeps its keys in %s, and not in %s: name the same store as before, or another directory with --data", d.data, was, is)
}

// keysIn is what the keys are in.
func (d *Demo) keysIn() string {
	if d.cfg.Store == nil {
		return string(service.SQLite.System)
	}
	return d.cfg.Store.Name
}

func (d *Demo) storeEnv() []string {
	if d.cfg.Store == nil {
		return nil
	}
	return d.cfg.Store.Env
}

func (d *Demo) readIdentity() (known identity, err error) {
	path := filepath.Join(d.data, identityFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err == nil && (known.Demo == "" || len(known.Demo) > service.MaxDemo) {
		err = errors.New("it names no demo")
	}
	if err != nil {
		return known, fmt.Errorf("read which demo the directory belongs to, in %s: %w", path, err)
	}
	return known, nil
}

func (d *Demo) writeIdentity(known identity) error {
	return os.WriteFile(filepath.Join(d.data, identityFile), payments.Marshal(known), 0o600)
}
